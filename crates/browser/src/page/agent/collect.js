// The interactive elements of the page, with frames and shadow roots, in document order.

const place = (element, rects) => {
  const [lead] = rects;
  if (!lead) return null;
  const size = Math.max(...rects.map((rect) => rect.width * rect.height));
  for (const rect of rects) {
    const x = rect.x + rect.width / 2;
    const y = rect.y + rect.height / 2;
    if (x < 0 || y < 0 || x >= innerWidth || y >= innerHeight) continue;
    if (hits(element, x, y)) return size > 0.9 * innerWidth * innerHeight ? null : { at: 'shown', rect };
  }
  const middle = lead.y + lead.height / 2;
  if (middle < 0) return { at: 'above' };
  return middle >= innerHeight ? { at: 'below' } : null;
};

// Options of a list that is always open have boxes of their own, but the list takes the hits.
const inListBox = (list, option) => {
  const outer = list.getBoundingClientRect();
  const box = option.getBoundingClientRect();
  const middle = (box.top + box.bottom) / 2;
  return middle >= outer.top && middle <= outer.bottom;
};

const placeOption = (list, option, rects) =>
  inListBox(list, option) ? (place(option, rects) ?? place(list, rects)) : null;

const collect = () => {
  const open = openSelect();
  const found = [];
  const foreign = [];
  const cursors = new Map();
  const add = (element, style, rects, spot) => {
    if (spot) found.push({ ...region(element, rects, style), place: spot.at, mark: spot.rect });
  };
  const descend = (element, style, view) => {
    if (element.shadowRoot) {
      watch(element.shadowRoot);
      visit(element.shadowRoot, view, style.cursor);
    }
    if (!isFrame(element) || !seen(element)) return;
    const doc = inner(element);
    const inside = viewOf(element, view);
    if (doc) {
      watch(doc);
      visit(doc.documentElement, inside, 'auto');
    } else if (element.clientWidth > 0 && element.clientHeight > 0) foreign.push({ id: idOf(element), view: inside });
  };
  const look = (element, view, parentCursor) => {
    const style = styleOf(element);
    if (style.display === 'none' || element.inert) return NodeFilter.FILTER_REJECT;
    const parent = element.assignedSlot ?? element.parentElement;
    const before = parent && cursors.has(parent) ? cursors.get(parent) : parentCursor;
    cursors.set(element, style.cursor);
    descend(element, style, view);
    if (invites(element, style.cursor, before) && !disabled(element) && seen(element)) {
      const rects = boxes(element, view);
      add(element, style, rects, place(element, rects));
    }
    const list = element.localName === 'option' ? element.closest('select') : null;
    if (list && !dropsDown(list) && !disabled(element) && !disabled(list) && seen(element)) {
      const rects = boxes(element, view);
      add(element, style, rects, placeOption(list, element, rects));
    }
    if (element === open) {
      for (const { option, text, chosen, place, rect } of rowsOf(open).rows)
        found.push({ ...region(option, [rect], style), aria_name: text, place, mark: rect, option: { chosen } });
    }
    return NodeFilter.FILTER_ACCEPT;
  };
  const visit = (root, view, cursor) => {
    const filter = (element) => look(element, view, cursor);
    if (root.nodeType === Node.ELEMENT_NODE && filter(root) === NodeFilter.FILTER_REJECT) return;
    const walker = root.ownerDocument.createTreeWalker(root, NodeFilter.SHOW_ELEMENT, filter);
    while (walker.nextNode());
  };
  visit(document.documentElement, WHOLE, 'auto');
  return { elements: uncovered(found), foreign };
};
