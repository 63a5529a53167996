// For pages with a virtual clock, which stands still whenever these functions run: timers do not fire.

const clockTime = () => Date.now();

// Lets the page draw frames: what depends on them (scroll events, observers) is then ready to run with the clock.
const drawStoppedFrames = async (count) => {
  if (document.pointerLockElement) document.exitPointerLock();
  observeFrames(document);
  // A hidden page, and one that has nothing to show yet, draws no frames.
  const draws = () => document.visibilityState !== 'hidden' && document.readyState !== 'loading';
  for (let drawn = 0; drawn < count && draws(); drawn += 1) await new Promise((resolve) => requestAnimationFrame(resolve));
};

// Keeps the caret from blinking. The property is inherited, also by shadow trees.
const caretStyle = new CSSStyleSheet();
caretStyle.replaceSync(':root { caret-animation: manual !important }');
const showCaret = () => {
  if (!document.adoptedStyleSheets.includes(caretStyle)) document.adoptedStyleSheets.push(caretStyle);
};

// Ends the animations that have reached their end by the virtual clock (`determinism/page.js`). At last also those that
// still run, which that script has not seen: they would follow the real time.
const MAX_END_GAP_MS = 0.02;
const finishAnimations = (isLast) => {
  showCaret();
  for (const animation of document.getAnimations()) {
    const endTime = animation.effect?.getComputedTiming().endTime;
    if (animation.timeline !== document.timeline || endTime === undefined) continue;
    const gap = animation.playbackRate < 0 ? animation.currentTime : endTime - animation.currentTime;
    const isDue = (isLast && animation.playState === 'running') || (animation.playState === 'paused' && gap <= MAX_END_GAP_MS);
    if (!isDue) continue;
    if (Number.isFinite(endTime)) animation.finish();
    else {
      animation.pause();
      animation.currentTime = 0;
    }
  }
};
