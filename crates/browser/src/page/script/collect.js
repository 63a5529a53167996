// Collects the interactive elements of the page, including those in frames and shadow roots, in document order.

// Elements that cover more of the viewport than this get no mark.
const MAX_MARKED_SHARE = 0.9;

// Where an element is: visible (with the rectangle to mark), above or below the viewport, or nowhere (null).
const viewportPosition = (element, rects) => {
  const [lead] = rects;
  if (!lead) return null;
  const largest = Math.max(...rects.map((rect) => rect.width * rect.height));
  for (const rect of rects) {
    const x = rect.x + rect.width / 2;
    const y = rect.y + rect.height / 2;
    if (!isInViewport(x, y)) continue;
    if (receivesClick(element, x, y))
      return largest > MAX_MARKED_SHARE * innerWidth * innerHeight ? null : { position: 'visible', rect };
  }
  const middle = lead.y + lead.height / 2;
  if (middle < 0) return { position: 'above' };
  return middle >= innerHeight ? { position: 'below' } : null;
};

// The options of a list box have boxes of their own, but clicks on them hit the list.
const isInListBox = (list, option) => {
  const outer = list.getBoundingClientRect();
  const box = option.getBoundingClientRect();
  const middle = (box.top + box.bottom) / 2;
  return middle >= outer.top && middle <= outer.bottom;
};

const optionPosition = (list, option, rects) =>
  isInListBox(list, option) ? (viewportPosition(option, rects) ?? viewportPosition(list, rects)) : null;

const collectElements = () => {
  const open = openDropdown();
  const found = [];
  const crossOriginFrames = [];
  const cursors = new Map();
  const add = (element, style, rects, place) => {
    if (place) found.push({ element, ...region(element, rects, style), position: place.position, mark: place.rect });
  };
  const descend = (element, style, transform) => {
    if (element.shadowRoot) {
      observe(element.shadowRoot);
      walk(element.shadowRoot, transform, style.cursor);
    }
    if (!isFrame(element) || !isVisible(element)) return;
    const doc = frameDocument(element);
    const inner = innerTransform(element, transform);
    if (doc) {
      observe(doc);
      walk(doc.documentElement, inner, 'auto');
    } else if (element.clientWidth > 0 && element.clientHeight > 0) crossOriginFrames.push({ id: idOf(element), transform: inner });
  };
  const visit = (element, transform, rootCursor) => {
    const style = styleOf(element);
    if (style.display === 'none' || element.inert) return NodeFilter.FILTER_REJECT;
    const parent = element.assignedSlot ?? element.parentElement;
    const parentCursor = parent && cursors.has(parent) ? cursors.get(parent) : rootCursor;
    cursors.set(element, style.cursor);
    descend(element, style, transform);
    if (isInteractive(element, style.cursor, parentCursor) && !isDisabled(element) && isVisible(element)) {
      const rects = pageRects(element, transform);
      add(element, style, rects, viewportPosition(element, rects));
    }
    const list = element.localName === 'option' ? element.closest('select') : null;
    if (list && !isDropdown(list) && !isDisabled(element) && !isDisabled(list) && isVisible(element)) {
      const rects = pageRects(element, transform);
      add(element, style, rects, optionPosition(list, element, rects));
    }
    if (element === open) {
      for (const { option, text, selected, position, rect } of dropdownRows(open).rows)
        found.push({ ...region(option, [rect], style), aria_name: text, position, mark: rect, option: { selected } });
    }
    return NodeFilter.FILTER_ACCEPT;
  };
  const walk = (root, transform, rootCursor) => {
    const filter = (element) => visit(element, transform, rootCursor);
    if (root.nodeType === Node.ELEMENT_NODE && filter(root) === NodeFilter.FILTER_REJECT) return;
    const walker = root.ownerDocument.createTreeWalker(root, NodeFilter.SHOW_ELEMENT, filter);
    while (walker.nextNode());
  };
  walk(document.documentElement, IDENTITY, 'auto');
  const marked = withoutWrappers(withoutCovered(found));
  return { elements: marked.map(({ element, ...entry }) => entry), crossOriginFrames };
};
