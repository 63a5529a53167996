// Actions on an element: finding a point to click, selecting options, setting values, scrolling.

const NOT_ON_PAGE = { missing: 'it is no longer on the page' };

// Relative positions in a rectangle at which a click is tried, the centre first.
const CLICK_GRID = [0.5, 0.25, 0.75, 0.1, 0.9];
const clickPoint = (element) => {
  const rects = pageRects(element, documentTransform(element.ownerDocument));
  for (const shareY of CLICK_GRID)
    for (const shareX of CLICK_GRID)
      for (const rect of rects) {
        const x = rect.x + rect.width * shareX;
        const y = rect.y + rect.height * shareY;
        if (isInViewport(x, y) && receivesClick(element, x, y)) return { x, y, covered: false };
      }
  const rect = rects[0];
  return rect && { x: rect.x + rect.width / 2, y: rect.y + rect.height / 2, covered: true };
};

// With a pointer lock every click goes to the locking element. A user would press Escape first.
const releasePointerLock = async () => {
  if (!document.pointerLockElement) return;
  const released = new Promise((resolve) => document.addEventListener('pointerlockchange', resolve, { once: true }));
  document.exitPointerLock();
  await Promise.race([released, new Promise((resolve) => setTimeout(resolve, 500))]);
};

const selectOf = (element) => (element.localName === 'option' ? element.closest('select') : null);

// The point at which to click an element; scrolls it into view if needed.
const locate = async (id) => {
  const element = elementById(id);
  if (!element) return NOT_ON_PAGE;
  await releasePointerLock();
  if (selectOf(element)) return { option: true };
  let point = clickPoint(element);
  if (!point || point.covered) {
    element.scrollIntoView({ block: 'center', inline: 'center', behavior: 'instant' });
    point = clickPoint(element);
  }
  return point ?? { missing: 'it is hidden' };
};

const chooseOption = (id) => {
  const element = elementById(id);
  if (!element) return NOT_ON_PAGE;
  const select = selectOf(element);
  return select ? selectOption(select, element) : { click: true };
};

const selectOption = (select, option) => {
  if (isDisabled(select) || option.matches(':disabled')) return { missing: 'it is disabled' };
  select.focus({ preventScroll: true });
  const before = [...select.selectedOptions];
  if (select.multiple) option.selected = !option.selected;
  else option.selected = true;
  closeDropdown(select);
  const after = [...select.selectedOptions];
  if (before.length !== after.length || before.some((selected, index) => selected !== after[index])) fireChangeEvents(select);
  return { done: true };
};

// Fires the events of a change made by a user.
const fireChangeEvents = (element) => {
  element.dispatchEvent(new Event('input', { bubbles: true, composed: true }));
  element.dispatchEvent(new Event('change', { bubbles: true }));
};

const focusElement = (id) => {
  const element = elementById(id);
  const focused = focusedElement();
  if (!element || !focused) return;
  if (focused !== element && !isInside(focused, element)) element.focus?.();
};

// Sets the value of a focused select or picker, whose keyboard input is not plain text. Returns {} for every other
// field: the caller types into it.
const setFocusedValue = (value) => {
  const element = focusedElement();
  if (element?.localName === 'select') return selectByText(element, value);
  if (element?.localName !== 'input' || !PICKER_TYPES.has(element.type) || element.readOnly) return {};
  return setPicker(element, value);
};

// Selects the option whose text or value equals, starts with or contains the given text.
const selectByText = (select, text) => {
  const wanted = collapseSpaces(text).toLowerCase();
  const textOf = (option) => collapseSpaces(option.label || option.text).toLowerCase();
  const options = [...select.options].filter((option) => !option.matches(':disabled'));
  const option =
    options.find((candidate) => textOf(candidate) === wanted || candidate.value.toLowerCase() === wanted) ??
    options.find((candidate) => textOf(candidate).startsWith(wanted)) ??
    options.find((candidate) => wanted && textOf(candidate).includes(wanted));
  if (!option) return { refused: `no option of the list matches ${JSON.stringify(text)}` };
  return selectOption(select, option).done ? { set: 'select' } : { refused: 'the option is disabled' };
};

const SCROLL_STEPS = { up: [0, -1], down: [0, 1], left: [-1, 0], right: [1, 0] };
const isScrollable = (element, [dx, dy]) => {
  const style = styleOf(element);
  const isRoot = element === element.ownerDocument.scrollingElement;
  const allows = (overflow) => isRoot || /(auto|scroll|overlay)/.test(overflow);
  return (
    (dy !== 0 && allows(style.overflowY) && element.scrollHeight > element.clientHeight + 1) ||
    (dx !== 0 && allows(style.overflowX) && element.scrollWidth > element.clientWidth + 1)
  );
};

const nearestScrollable = (start, step) => {
  for (let node = start; node; ) {
    if (node instanceof Element || node.nodeType === Node.ELEMENT_NODE) {
      if (isScrollable(node, step)) return node;
    }
    node = flatTreeParent(node) ?? (node.nodeType === Node.DOCUMENT_NODE ? frameElements.get(node) : null);
  }
  return null;
};

const scrollBy = (element, [dx, dy], share) =>
  element.scrollBy({ left: dx * element.clientWidth * share, top: dy * element.clientHeight * share, behavior: 'instant' });

const scrollElement = (id, direction) => {
  const element = elementById(id);
  if (!element) return NOT_ON_PAGE;
  const list = selectOf(element) ?? element;
  if (list === openDropdown()) {
    scrollDropdown(list, SCROLL_STEPS[direction]);
    return { done: true };
  }
  const target = nearestScrollable(element, SCROLL_STEPS[direction]);
  if (target) scrollBy(target, SCROLL_STEPS[direction], 1);
  return { done: true };
};

// Scrolls the nearest scrollable element at a point. The page itself is scrolled by the caller, with the mouse wheel.
const scrollAt = (x, y, direction) => {
  if (scrollDropdownAt(x, y, direction)) return { done: true };
  const hit = topmostElement(x, y);
  const target = hit && nearestScrollable(hit, SCROLL_STEPS[direction]);
  if (!target || target === document.scrollingElement) return { wheel: true };
  scrollBy(target, SCROLL_STEPS[direction], 0.8);
  return { done: true };
};

// Whether the page has accepted a drag since the last mouse press. The browser then takes over the mouse.
let dragStart = null;
const onDragStart = (event) => {
  dragStart = event;
};
const hasDragStarted = () => {
  const started = Boolean(dragStart && !dragStart.defaultPrevented);
  if (started) dragStart = null;
  return started;
};
