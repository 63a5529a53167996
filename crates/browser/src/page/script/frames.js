// Element ids, and geometry across shadow roots and same-origin frames.

// An element keeps its id as long as it exists.
const ids = new WeakMap();
const elements = new Map();
const idRegistry = new FinalizationRegistry((id) => elements.delete(id));
let nextId = 1;

const idOf = (element) => {
  let id = ids.get(element);
  if (id === undefined) {
    id = String(nextId++);
    ids.set(element, id);
    elements.set(id, new WeakRef(element));
    idRegistry.register(element, id);
  }
  return id;
};

// The element with this id, if it is still part of the page.
const elementById = (id) => {
  const element = elements.get(String(id))?.deref();
  return element?.isConnected && isReachable(element.ownerDocument) ? element : null;
};

const styleOf = (element) => element.ownerDocument.defaultView.getComputedStyle(element);

const frameElements = new WeakMap(); // document -> the frame element that shows it

const isFrame = (element) => element.localName === 'iframe' || element.localName === 'frame';

// The document of a frame; null if the frame has another origin.
const frameDocument = (frame) => {
  try {
    const doc = frame.contentDocument;
    if (doc?.documentElement) frameElements.set(doc, frame);
    return doc?.documentElement ? doc : null;
  } catch {
    return null;
  }
};

// Whether a document is still shown by a chain of connected frames.
const isReachable = (doc) => {
  for (let current = doc; current !== document; ) {
    const frame = frameElements.get(current);
    if (!frame?.isConnected || frame.contentDocument !== current) return false;
    current = frame.ownerDocument;
  }
  return true;
};

// A transform maps a document's viewport to the page's viewport: translation by x and y, scaling by scaleX and scaleY.
const IDENTITY = { x: 0, y: 0, scaleX: 1, scaleY: 1 };

// The transform of the document inside a frame element, given the transform of the document around it.
const innerTransform = (frame, outer) => {
  const box = frame.getBoundingClientRect();
  const style = styleOf(frame);
  const scaleX = frame.offsetWidth ? box.width / frame.offsetWidth : 1;
  const scaleY = frame.offsetHeight ? box.height / frame.offsetHeight : 1;
  const left = box.left + (frame.clientLeft + (parseFloat(style.paddingLeft) || 0)) * scaleX;
  const top = box.top + (frame.clientTop + (parseFloat(style.paddingTop) || 0)) * scaleY;
  return {
    x: outer.x + left * outer.scaleX,
    y: outer.y + top * outer.scaleY,
    scaleX: outer.scaleX * scaleX,
    scaleY: outer.scaleY * scaleY,
  };
};

const documentTransform = (doc) => {
  if (doc === document) return IDENTITY;
  const frame = frameElements.get(doc);
  return innerTransform(frame, documentTransform(frame.ownerDocument));
};

const isInViewport = (x, y) => x >= 0 && y >= 0 && x < innerWidth && y < innerHeight;

// For cross-origin frames: the transform of a frame, and at which points the frame is the topmost element.
const frameTransform = (id) => {
  const frame = elementById(id);
  return frame && innerTransform(frame, documentTransform(frame.ownerDocument));
};

const isFrameTopmostAt = (id, points) => {
  const frame = elementById(id);
  return points.map(([x, y]) => Boolean(frame) && isInViewport(x, y) && topmostElement(x, y) === frame);
};

const toPageRect = (rect, transform) => ({
  x: transform.x + rect.left * transform.scaleX,
  y: transform.y + rect.top * transform.scaleY,
  width: rect.width * transform.scaleX,
  height: rect.height * transform.scaleY,
});

const containsPoint = (rect, x, y) => x >= rect.x && x < rect.x + rect.width && y >= rect.y && y < rect.y + rect.height;

const flatTreeParent = (node) => {
  const parent = node.assignedSlot ?? node.parentNode;
  // Do not test for the property `host` alone: links have one too, with another meaning.
  return parent?.nodeType === Node.DOCUMENT_FRAGMENT_NODE ? parent.host : parent;
};

const isInside = (node, ancestor) => {
  for (let current = node; current; current = flatTreeParent(current)) if (current === ancestor) return true;
  return false;
};

// The innermost element at a point of the page, through shadow roots and same-origin frames.
const topmostElement = (x, y) => {
  let doc = document;
  let transform = IDENTITY;
  for (;;) {
    const [localX, localY] = [(x - transform.x) / transform.scaleX, (y - transform.y) / transform.scaleY];
    let element = doc.elementFromPoint(localX, localY);
    while (element?.shadowRoot) {
      const inner = element.shadowRoot.elementFromPoint(localX, localY);
      if (!inner || inner === element) break;
      element = inner;
    }
    const next = element && isFrame(element) ? frameDocument(element) : null;
    if (!next) return element;
    transform = innerTransform(element, transform);
    doc = next;
  }
};

// The focused element, through shadow roots and same-origin frames.
const focusedElement = () => {
  let element = document.activeElement;
  for (;;) {
    if (element?.shadowRoot?.activeElement) element = element.shadowRoot.activeElement;
    else if (element && isFrame(element) && frameDocument(element)?.activeElement) element = frameDocument(element).activeElement;
    else return element;
  }
};
