// For pages with a virtual clock, which stands still whenever these functions run: timers do not fire.

const clockTime = () => Date.now();

// Lets the page draw frames: what depends on them (scroll events, observers) is then ready to run with the clock.
const drawStoppedFrames = async (count) => {
  if (document.pointerLockElement) document.exitPointerLock();
  observeFrames(document);
  for (let drawn = 0; drawn < count && document.visibilityState !== 'hidden'; drawn += 1) await new Promise((resolve) => requestAnimationFrame(resolve));
};

// Ends the animations that have reached their end by the virtual clock (`determinism/page.js`).
const MAX_END_GAP_MS = 0.02;
const finishAnimations = () => {
  for (const animation of document.getAnimations()) {
    const endTime = animation.effect?.getComputedTiming().endTime;
    if (animation.playState !== 'paused' || !Number.isFinite(endTime)) continue;
    const gap = animation.playbackRate < 0 ? animation.currentTime : endTime - animation.currentTime;
    if (gap <= MAX_END_GAP_MS) animation.finish();
  }
};
