// Detects when the page is quiet, and keeps links to other programs from leaving the page.

let lastChange = -Infinity;
let quietSince = Infinity;
let framesAfterQuiet = Promise.resolve();

// A link to another program (mailto:, tel:, an app's own scheme) leads nowhere here, but the full browser would leave
// the page.
const HANDLED_SCHEMES = /^(https?|about|blob|data|javascript|file|chrome):$/;
const onClick = (event) => {
  const link = event.composedPath().find((node) => node.localName === 'a' || node.localName === 'area');
  if (link?.protocol && !HANDLED_SCHEMES.test(link.protocol)) event.preventDefault();
};

const observed = new WeakSet();
const mutationObserver = new MutationObserver(() => {
  lastChange = performance.now();
});
const observe = (root) => {
  if (observed.has(root)) return;
  observed.add(root);
  if (root.nodeType === Node.DOCUMENT_NODE) {
    const options = { capture: true };
    root.addEventListener('click', onClick, options);
    root.addEventListener('mousedown', onMouseDown, options);
    root.addEventListener('keydown', onKeyDown, options);
    root.addEventListener('focusout', onFocusOut, options);
    root.addEventListener('dragstart', onDragStart, options);
  }
  mutationObserver.observe(root, { subtree: true, childList: true, characterData: true, attributes: true });
};
const observeFrames = (doc) => {
  observe(doc);
  for (const frame of doc.querySelectorAll('iframe, frame')) if (frameDocument(frame)) observeFrames(frameDocument(frame));
};
observeFrames(document);

// Whether a short, finite animation is running. Endless and long animations are not waited for.
const MAX_ANIMATION_MS = 1500;
const isAnimating = () =>
  document.getAnimations().some((animation) => {
    if (animation.playState !== 'running') return false;
    const { endTime, duration } = animation.effect?.getComputedTiming() ?? {};
    return Number.isFinite(endTime) && duration > 0 && endTime <= MAX_ANIMATION_MS && endTime - (animation.currentTime ?? 0) > 0;
  });

// Resolves when the page has drawn its next frame: the callbacks that the page itself requested for this frame have run,
// and the frame is painted, when the task after requestAnimationFrame runs.
//
// A frame counts only if requestAnimationFrame reports it. A timer must not stand in for it: on a busy machine frames are
// late, and the page would count as settled before its own frame callbacks have run. A hidden page draws no frames at
// all, so its callbacks cannot run either; only there a timer is used.
const HIDDEN_FRAME_MS = 50;
const nextFrame = () =>
  new Promise((resolve) => {
    if (document.visibilityState === 'hidden') setTimeout(resolve, HIDDEN_FRAME_MS);
    else requestAnimationFrame(() => setTimeout(resolve, 0));
  });

const drawFrames = async (count) => {
  for (let drawn = 0; drawn < count; drawn += 1) await nextFrame();
};

const timeout = (ms) => new Promise((resolve) => setTimeout(resolve, ms, 'timeout'));

// Waits until the page is quiet: `frames` frames were drawn, no short animation runs, the page seems complete, and, if
// anything changed since the action `elapsed` ms ago, nothing has changed for `quietPeriod` ms. For a page that builds
// itself, `buildQuietPeriod` is set: see `isBuilt`. Gives up after `limit` ms. Afterwards `laterFrames` further frames are
// counted, for `describeQuiet`.
const waitUntilQuiet = async ({ elapsed, quietPeriod, buildQuietPeriod, limit, frames, laterFrames }) => {
  // A pointer lock would capture every further click.
  if (document.pointerLockElement) document.exitPointerLock();
  observeFrames(document);
  recordGrowth();
  const start = performance.now();
  const isNew = quietSince === Infinity;
  const expired = timeout(limit);
  const isComplete = () =>
    buildQuietPeriod ? isBuilt(start - elapsed, lastChange, buildQuietPeriod) : seemsComplete(performance.now() - start, isNew);
  const isQuiet = () => {
    const changed = lastChange >= start - elapsed;
    const isWaiting = globalThis.__webgymClipboard?.isWaiting();
    return (!changed || performance.now() - lastChange >= quietPeriod) && !isAnimating() && !isWaiting && isComplete();
  };
  const nextCheck = buildQuietPeriod ? () => nextFrame().then(nextIdle) : nextFrame;
  let outcome = await Promise.race([drawFrames(frames), expired]);
  while (outcome !== 'timeout' && !isQuiet()) outcome = await Promise.race([nextCheck(), expired]);
  // A page that builds itself may get more time, so its indicators are not accepted yet.
  if (!buildQuietPeriod && (isNew || outcome === 'timeout')) acceptIndicators();
  if (outcome === 'timeout') return { quiet: false };
  quietSince = performance.now();
  framesAfterQuiet = drawFrames(laterFrames);
  return { quiet: true };
};

// Whether anything has changed since the page was last found quiet, up to and including the frames counted since.
const changedSinceQuiet = async (limit) => {
  if ((await Promise.race([framesAfterQuiet, timeout(limit)])) === 'timeout') return true;
  return !(lastChange < quietSince) || quietSince === Infinity || isAnimating();
};

// What belongs to a screenshot that was taken since the page was quiet; null if anything has changed meanwhile.
const describeQuiet = async (limit) =>
  (await changedSinceQuiet(limit)) ? null : { metadata: metadata(), rows: openDropdownRows() };

const viewportSize = () => ({ width: innerWidth, height: innerHeight });
