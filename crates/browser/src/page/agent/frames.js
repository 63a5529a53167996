// Identity and place: which element is which, and where things are across same-process frames and shadow roots.

// An element keeps its id while it lives in the document.
const ids = new WeakMap();
const elements = new Map();
const forget = new FinalizationRegistry((id) => elements.delete(id));
let nextId = 1;

const idOf = (element) => {
  let id = ids.get(element);
  if (id === undefined) {
    id = String(nextId++);
    ids.set(element, id);
    elements.set(id, new WeakRef(element));
    forget.register(element, id);
  }
  return id;
};

const byId = (id) => {
  const element = elements.get(String(id))?.deref();
  return element?.isConnected && reachable(element.ownerDocument) ? element : null;
};

const styleOf = (element) => element.ownerDocument.defaultView.getComputedStyle(element);

const holders = new WeakMap(); // document -> the iframe element that shows it

const isFrame = (element) => element.localName === 'iframe' || element.localName === 'frame';

const inner = (frame) => {
  try {
    const doc = frame.contentDocument;
    if (doc?.documentElement) holders.set(doc, frame);
    return doc?.documentElement ? doc : null;
  } catch {
    return null;
  }
};

const reachable = (doc) => {
  for (let at = doc; at !== document; ) {
    const frame = holders.get(at);
    if (!frame?.isConnected || frame.contentDocument !== at) return false;
    at = frame.ownerDocument;
  }
  return true;
};

// How the viewport of a document lies in the one of the page: shifted by x and y, scaled by kx and ky.
const WHOLE = { x: 0, y: 0, kx: 1, ky: 1 };

const viewOf = (frame, outer) => {
  const box = frame.getBoundingClientRect();
  const style = styleOf(frame);
  const kx = frame.offsetWidth ? box.width / frame.offsetWidth : 1;
  const ky = frame.offsetHeight ? box.height / frame.offsetHeight : 1;
  const left = box.left + (frame.clientLeft + (parseFloat(style.paddingLeft) || 0)) * kx;
  const top = box.top + (frame.clientTop + (parseFloat(style.paddingTop) || 0)) * ky;
  return { x: outer.x + left * outer.kx, y: outer.y + top * outer.ky, kx: outer.kx * kx, ky: outer.ky * ky };
};

// Frames of other origins: where one lies, and whether it is what a person hits at these points.
const frameView = (id) => {
  const frame = byId(id);
  return frame && viewOf(frame, viewFor(frame.ownerDocument));
};

const frameHits = (id, points) => {
  const frame = byId(id);
  const inside = ([x, y]) => x >= 0 && y >= 0 && x < innerWidth && y < innerHeight;
  return points.map((point) => Boolean(frame) && inside(point) && deepest(...point) === frame);
};

const viewFor = (doc) => {
  if (doc === document) return WHOLE;
  const frame = holders.get(doc);
  return viewOf(frame, viewFor(frame.ownerDocument));
};

const onPage = (rect, view) => ({
  x: view.x + rect.left * view.kx,
  y: view.y + rect.top * view.ky,
  width: rect.width * view.kx,
  height: rect.height * view.ky,
});

const holds = (rect, x, y) => x >= rect.x && x < rect.x + rect.width && y >= rect.y && y < rect.y + rect.height;

const flatParent = (node) => {
  const parent = node.assignedSlot ?? node.parentNode;
  // Not any parent with a `host`: links have one too, of another kind.
  return parent?.nodeType === Node.DOCUMENT_FRAGMENT_NODE ? parent.host : parent;
};

const within = (outer, node) => {
  for (let at = node; at; at = flatParent(at)) if (at === outer) return true;
  return false;
};

// The element a person would hit at a point of the page.
const deepest = (x, y) => {
  let doc = document;
  let view = WHOLE;
  for (;;) {
    const [localX, localY] = [(x - view.x) / view.kx, (y - view.y) / view.ky];
    let element = doc.elementFromPoint(localX, localY);
    while (element?.shadowRoot) {
      const deeper = element.shadowRoot.elementFromPoint(localX, localY);
      if (!deeper || deeper === element) break;
      element = deeper;
    }
    const next = element && isFrame(element) ? inner(element) : null;
    if (!next) return element;
    view = viewOf(element, view);
    doc = next;
  }
};

const activeElement = () => {
  let element = document.activeElement;
  for (;;) {
    if (element?.shadowRoot?.activeElement) element = element.shadowRoot.activeElement;
    else if (element && isFrame(element) && inner(element)?.activeElement) element = inner(element).activeElement;
    else return element;
  }
};
