// Recognises a page that is not complete: it shows a busy indicator, has no content yet, or is still adding controls.

const BUSY_SELECTOR = '[aria-busy=true i], [role=progressbar]:not([aria-valuenow]), progress:not([value])';
// Other indicators, by their usual names ("spinner") and labels ("Running…"). Less certain, so only looked for in pages that
// build themselves.
const LOADING_SELECTOR = [
  BUSY_SELECTOR,
  '[class*=spinner i], [class*=skeleton i], [data-testid*=skeleton i], [aria-label^=loading i]',
  ':is([role=img], [role=status]):is([aria-label$="..."], [aria-label$="…"])',
].join();
const CONTROL_SELECTOR = 'a[href], button, input, select, textarea, [role], [tabindex]';
const CONTENT_SELECTOR = 'img, svg, canvas, video, iframe, frame, object, embed, input, select, textarea, button';

// A page that adds no controls for this long, but changes all the time, is complete: it has a clock, a ticker or the like.
const STALL_MS = 1500;
// A page that was quiet for this long is not one that changes all the time.
const MIN_CALM_MS = 200;
// How long a page without other signs of an application is given to show content, or to remove its busy indicator.
const MAX_DOUBT_MS = 1000;

// Indicators that outlived a wait. They are part of the page and never waited for again.
const lastingIndicators = new WeakSet();
const scriptStart = performance.now();
let controlCount = document.querySelectorAll(CONTROL_SELECTOR).length;
let lastGrowth = -Infinity;
let stalls = 0;

const isOnScreen = (element) => {
  const { width, height, top, right, bottom, left } = element.getBoundingClientRect();
  return width > 0 && height > 0 && bottom > 0 && right > 0 && top < innerHeight && left < innerWidth && isVisible(element);
};

const visibleIndicators = (selector) =>
  [...document.querySelectorAll(selector)].filter((element) => !lastingIndicators.has(element) && isOnScreen(element));

const acceptIndicators = () => {
  for (const element of visibleIndicators(LOADING_SELECTOR)) lastingIndicators.add(element);
};

// Whether the screen is covered by an element without controls that contains an endless animation, as splash screens do.
const MIN_SPLASH_SHARE = 0.8;
const hasSplash = () => {
  const isEndless = ({ effect, playState }) => playState === 'running' && effect?.target && effect.getComputedTiming().endTime === Infinity;
  const endless = document.getAnimations().filter(isEndless);
  if (endless.length === 0) return false;
  const isSplash = (element) => {
    const { width, height } = element.getBoundingClientRect();
    return width * height >= MIN_SPLASH_SHARE * innerWidth * innerHeight && endless.some(({ effect }) => isInside(effect.target, element));
  };
  for (let element = document.elementFromPoint(innerWidth / 2, innerHeight / 2); element; element = element.parentElement) {
    if (element.matches(CONTROL_SELECTOR) || element.querySelector(CONTROL_SELECTOR)) return false;
    if (isSplash(element)) return true;
  }
  return false;
};

const hasText = (root) => {
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) if (walker.currentNode.data.trim() && isVisible(walker.currentNode.parentElement)) return true;
  return false;
};

// Whether a page with scripts shows nothing where its content belongs.
const isEmpty = () => {
  const root = document.querySelector('main, [role=main]') ?? document.body;
  if (!root || document.scripts.length === 0 || root.localName === 'frameset') return false;
  if (hasText(root) || [...root.querySelectorAll(CONTENT_SELECTOR)].some(isOnScreen)) return false;
  return ![...root.querySelectorAll('*')].some((element) => element.shadowRoot);
};

const recordGrowth = () => {
  const count = document.querySelectorAll(CONTROL_SELECTOR).length;
  if (count !== controlCount) lastGrowth = performance.now();
  controlCount = count;
};

const isIncomplete = () => {
  recordGrowth();
  return performance.now() - lastGrowth < STALL_MS || visibleIndicators(LOADING_SELECTOR).length > 0 || hasSplash() || isEmpty();
};

// Whether a page that builds itself since `since` is complete: nothing has changed for `quietPeriod` ms. If it never stops
// changing, it is complete when it stops adding controls; each time halves the patience for the next action.
const isBuilt = (since, lastChange, quietPeriod) => {
  recordGrowth();
  if (visibleIndicators(LOADING_SELECTOR).length > 0 || hasSplash() || isEmpty()) return false;
  const now = performance.now();
  const begin = Math.max(since, scriptStart);
  const patience = 2 ** -stalls;
  if (now - Math.max(begin, lastChange) >= patience * quietPeriod) {
    if (patience * quietPeriod >= MIN_CALM_MS) stalls = 0;
    return true;
  }
  const isStalled = now - Math.max(begin, lastGrowth) >= patience * STALL_MS;
  if (isStalled) stalls += 1;
  return isStalled;
};

// The same for a page of which nothing is known. `isNew` is whether the document has not been found quiet before.
const seemsComplete = (waited, isNew) => {
  if (isNew && waited >= MAX_DOUBT_MS) return true;
  return visibleIndicators(BUSY_SELECTOR).length === 0 && !(isNew && isEmpty());
};

// Resolves when the main thread has nothing else to do.
const nextIdle = () => new Promise((resolve) => requestIdleCallback(resolve));
