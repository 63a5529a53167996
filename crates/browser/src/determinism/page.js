// Runs in the main world of every frame before its own scripts: what Chromium's virtual clock leaves to real time (frames,
// animations, idle time, time origin) follows the virtual clock too, and random numbers are seeded.

// A target may run this script twice in its first document.
if (Object.hasOwn(document, '__webgymVirtual')) return;
Object.defineProperty(document, '__webgymVirtual', { value: true });

// Where the frame is in the page: the same URL in two frames gives different random numbers.
const framePath = () => {
  const path = [];
  for (let frame = window; frame !== frame.parent; frame = frame.parent) {
    let index = 0;
    while (index < frame.parent.length && frame.parent[index] !== frame) index += 1;
    path.push(index);
  }
  return path.join('.');
};
const { setTimeout, clearTimeout } = window;
const dateNow = Date.now;
// Fixed at the first use, for the same reason as the seed.
let origin;
const timeOrigin = () => (origin ??= dateNow());
// By the second, so that a page that is loaded again does not repeat its ids.
const realmName = () => `${location.href} ${framePath()} ${Math.floor(dateNow() / 1000)}`;

RANDOM

// Advances a little with every call, so that a loop that waits for it ends.
let lastNow = 0;
const now = () => (lastNow = Math.max(dateNow() - timeOrigin(), lastNow + 0.005));
replace(Performance.prototype, 'now', now);
Object.defineProperty(Performance.prototype, 'timeOrigin', { get: timeOrigin, configurable: true, enumerable: true });

// Each turn is scheduled for a multiple of its interval, so that a delay of one turn does not shift all later ones: Chromium
// moves the clock by 10 ms for requests, once for those that overlap. It also lengthens the shortest delays of nested timers.
const MIN_DELAY_MS = 4;
const untilNext = (interval) => {
  const delay = interval - (dateNow() % interval);
  return delay < MIN_DELAY_MS ? delay + interval : delay;
};

// Frames of the page's scripts, on the virtual clock.
const FRAME_MS = 16;
let callbacks = new Map();
let running = new Map();
let lastHandle = 0;
const runFrame = () => {
  running = callbacks;
  callbacks = new Map();
  const time = dateNow() - timeOrigin();
  for (const callback of running.values()) {
    try {
      callback(time);
    } catch (error) {
      reportError(error);
    }
  }
};
replace(window, 'requestAnimationFrame', (callback) => {
  if (typeof callback !== 'function') throw new TypeError("Failed to execute 'requestAnimationFrame' on 'Window': parameter 1 is not of type 'Function'.");
  if (callbacks.size === 0) setTimeout(runFrame, untilNext(FRAME_MS));
  lastHandle += 1;
  callbacks.set(lastHandle, callback);
  return lastHandle;
});
replace(window, 'cancelAnimationFrame', (handle) => {
  callbacks.delete(handle);
  running.delete(handle);
});
replace(window, 'requestIdleCallback', (callback) => setTimeout(() => callback({ didTimeout: false, timeRemaining: () => 50 }), 1));
replace(window, 'cancelIdleCallback', (handle) => clearTimeout(handle));

// Scrolling has no animation.
for (const owner of [Element.prototype, window])
  for (const name of ['scroll', 'scrollTo', 'scrollBy', 'scrollIntoView']) {
    const native = owner[name];
    replace(owner, name, function (...args) {
      const [options] = args;
      if (args.length === 1 && options?.behavior === 'smooth') return native.call(this, { ...options, behavior: 'instant' });
      return native.apply(this, args);
    });
  }

// Animations, CSS transitions included, are paused and moved by the virtual clock. Endless ones stay at their start. An
// animation stops just before its end, because the events of the end come with a frame, in real time: the farm finishes it
// when the clock stands still (`finishAnimations` in `page/script/virtual_time.js`).
const ANIMATION_TICK_MS = 100;
const END_GAP_MS = 0.01;
const { getAnimations } = Document.prototype;
const startTimes = new WeakMap();
// Whether an animation has not reached its end, and whether one may have started since. Asking for all animations makes the page
// compute its styles, so that is done only then.
let isMoving = false;
let mayStart = true;
const moveAnimation = (animation) => {
  if (animation.timeline !== document.timeline || !animation.effect) return;
  const started = startTimes.get(animation);
  if (animation.playState !== 'running' && !(started !== undefined && animation.playState === 'paused')) return;
  const { endTime } = animation.effect.getComputedTiming();
  if (started === undefined || animation.playState === 'running') {
    startTimes.set(animation, dateNow());
    animation.pause();
    animation.currentTime = animation.playbackRate < 0 && Number.isFinite(endTime) ? endTime : 0;
    isMoving = true;
    return;
  }
  if (!Number.isFinite(endTime)) return;
  isMoving = true;
  const elapsed = Math.min((dateNow() - started) * Math.abs(animation.playbackRate), endTime - END_GAP_MS);
  animation.currentTime = animation.playbackRate < 0 ? endTime - elapsed : elapsed;
};
const moveAnimations = () => {
  [isMoving, mayStart] = [false, false];
  for (const animation of getAnimations.call(document)) {
    try {
      moveAnimation(animation);
    } catch {
      // An animation with an unusual timing stays as it is.
    }
  }
};
const tick = () => {
  if (isMoving || mayStart) moveAnimations();
  setTimeout(tick, untilNext(ANIMATION_TICK_MS));
};
setTimeout(tick, untilNext(ANIMATION_TICK_MS));
const expectStart = () => {
  mayStart = true;
};
new MutationObserver(expectStart).observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
const STARTING = ['load', 'pointerover', 'pointerdown', 'pointerup', 'focusin', 'focusout', 'keydown', 'input', 'change', 'toggle', 'scroll', 'resize'];
for (const type of STARTING) addEventListener(type, expectStart, true);
replace(Element.prototype, 'animate', (({ animate }) => function (...args) {
  expectStart();
  return animate.apply(this, args);
})(Element.prototype));
for (const name of ['play', 'reverse', 'updatePlaybackRate'])
  replace(Animation.prototype, name, ((native) => function (...args) {
    expectStart();
    return native.apply(this, args);
  })(Animation.prototype[name]));
// While the clock waits for the network, frames are drawn and animations start.
for (const type of ['DOMContentLoaded', 'animationstart', 'transitionrun']) addEventListener(type, moveAnimations, true);
