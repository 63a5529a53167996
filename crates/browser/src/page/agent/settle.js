// When the page is at rest, and the listeners that keep it inside the one window it has.

let lastChange = -Infinity;
let calmSince = Infinity;

// A link to another program (mailto:, tel:, an app's own scheme) leads nowhere from here; the full browser
// would leave the page over it.
const INSIDE = /^(https?|about|blob|data|javascript|file|chrome):$/;
const stayInside = (event) => {
  const link = event.composedPath().find((node) => node.localName === 'a' || node.localName === 'area');
  if (link?.protocol && !INSIDE.test(link.protocol)) event.preventDefault();
};

const watched = new WeakSet();
const observer = new MutationObserver(() => {
  lastChange = performance.now();
});
const watch = (root) => {
  if (watched.has(root)) return;
  watched.add(root);
  if (root.nodeType === Node.DOCUMENT_NODE) {
    const first = { capture: true };
    root.addEventListener('click', stayInside, first);
    root.addEventListener('mousedown', pressed, first);
    root.addEventListener('keydown', keyed, first);
    root.addEventListener('focusout', left, first);
  }
  observer.observe(root, { subtree: true, childList: true, characterData: true, attributes: true });
};
const watchFrames = (doc) => {
  watch(doc);
  for (const frame of doc.querySelectorAll('iframe, frame')) if (inner(frame)) watchFrames(inner(frame));
};
watchFrames(document);

// Short animations that end by themselves: worth waiting for. Endless or long ones are not.
const animating = () =>
  document.getAnimations().some((animation) => {
    if (animation.playState !== 'running') return false;
    const { endTime, duration } = animation.effect?.getComputedTiming() ?? {};
    return Number.isFinite(endTime) && duration > 0 && endTime <= 1500 && endTime - (animation.currentTime ?? 0) > 0;
  });

// Resolves when so many frames were drawn, nothing short is still moving, and, if anything changed since the
// action `elapsed` ms ago, nothing has changed for `still` ms. Gives up after `limit` ms.
const quiet = (elapsed, still, limit, frames) =>
  new Promise((resolve) => {
    // A locked pointer would swallow every further click.
    if (document.pointerLockElement) document.exitPointerLock();
    watchFrames(document);
    const start = performance.now();
    let drawn = -1;
    const frame = () => {
      let done = false;
      const go = () => {
        if (done) return;
        done = true;
        clearTimeout(timer);
        check();
      };
      const timer = setTimeout(go, 50); // frames stop coming when nothing draws them
      // What the page itself does in this frame is done, and the frame painted, when the next task runs.
      requestAnimationFrame(() => setTimeout(go, 0));
    };
    const check = () => {
      drawn += 1;
      const now = performance.now();
      const changed = lastChange >= start - elapsed;
      const calm = !changed || now - lastChange >= still;
      if (drawn >= frames && calm && !animating()) {
        calmSince = now;
        resolve({ quiet: true, changed });
      } else if (now - start >= limit) resolve({ quiet: false, changed });
      else frame();
    };
    check();
  });

// Whether anything has happened since the page was last found quiet.
const stirred = () => !(lastChange < calmSince) || calmSince === Infinity || animating();

const size = () => ({ width: innerWidth, height: innerHeight });
