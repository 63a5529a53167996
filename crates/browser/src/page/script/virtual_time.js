// For pages with a virtual clock, which stands still whenever these functions run: timers do not fire.

const clockTime = () => Date.now();

// Keeps the caret from blinking. The property is inherited, also by shadow trees.
const caretStyle = new CSSStyleSheet();
caretStyle.replaceSync(':root { caret-animation: manual !important }');
// A new style sheet makes the page compute all its styles, so it is added when something has the focus.
const showCaret = () => {
  const { activeElement, body } = document;
  const hasFocus = document.designMode === 'on' || (activeElement && (activeElement !== body || body.isContentEditable));
  if (hasFocus && !document.adoptedStyleSheets.includes(caretStyle)) document.adoptedStyleSheets.push(caretStyle);
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

// Ends animations and lets the page draw: what depends on frames (scroll events, observers) is then ready to run with the clock.
// Returns what the clock shows.
const drawStoppedFrame = async (isLast) => {
  finishAnimations(isLast);
  if (document.pointerLockElement) document.exitPointerLock();
  observeFrames(document);
  // A hidden page, and one that has nothing to show yet, draws no frames.
  const draws = document.visibilityState !== 'hidden' && document.readyState !== 'loading';
  if (draws) await new Promise((resolve) => requestAnimationFrame(resolve));
  return Date.now();
};
