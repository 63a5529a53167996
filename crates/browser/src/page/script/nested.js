// Removes the marks of elements that only wrap another marked control, such as a custom element around the button in its
// shadow root. A click on either has the same effect.

// By how much the boxes of a wrapper and its control may differ on each side.
const MAX_WRAPPER_MARGIN = 8;
const isNearlySame = (outer, inner) => {
  const edges = (rect) => [rect.x, rect.y, rect.x + rect.width, rect.y + rect.height];
  const innerEdges = edges(inner);
  return edges(outer).every((edge, index) => Math.abs(edge - innerEdges[index]) <= MAX_WRAPPER_MARGIN);
};

// Whether an element is a control by its kind, not only by its cursor or tabindex.
const isControl = (element) => element.matches(INTERACTIVE_SELECTOR) || INTERACTIVE_ROLES.has(explicitRole(element));

// Of a wrapper and the control inside it, the one that tells more: a control rather than any other element, then the
// inner one if it has a name.
const isInnerBetter = (outer, inner) => {
  if (isControl(outer.element) !== isControl(inner.element)) return isControl(inner.element);
  return inner.aria_name !== '' || outer.aria_name === '';
};

// The nearest element around an element that is in `marked`, as its entry there.
const markedAncestor = (element, marked) => {
  for (let outer = flatTreeParent(element); outer; outer = flatTreeParent(outer)) if (marked.has(outer)) return marked.get(outer);
  return null;
};

// Removes from `marked` the wrappers of an entry, or the entry itself if its wrapper tells more.
const removeWrappers = (entry, marked) => {
  while (marked.has(entry.element)) {
    const outer = markedAncestor(entry.element, marked);
    if (!outer || !isNearlySame(outer.mark, entry.mark)) return;
    marked.delete((isInnerBetter(outer, entry) ? outer : entry).element);
  }
};

const withoutWrappers = (found) => {
  const isMarked = ({ position, option }) => position === 'visible' && !option;
  const marked = new Map(found.filter(isMarked).map((entry) => [entry.element, entry]));
  for (const entry of [...marked.values()]) removeWrappers(entry, marked);
  for (const { element } of [...marked.values()]) {
    // A label does what its control does.
    if (element.localName === 'label' && !isControl(element) && marked.has(element.control)) marked.delete(element);
  }
  return found.filter((entry) => !isMarked(entry) || marked.has(entry.element));
};
