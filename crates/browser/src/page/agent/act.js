// Acting on an element: where to click it, choosing, filling, scrolling.

const GRID = [0.5, 0.25, 0.75, 0.1, 0.9];
const clickPoint = (element) => {
  const rects = boxes(element, viewFor(element.ownerDocument));
  const inside = (x, y) => x >= 0 && y >= 0 && x < innerWidth && y < innerHeight;
  for (const fy of GRID)
    for (const fx of GRID)
      for (const rect of rects) {
        const x = rect.x + rect.width * fx;
        const y = rect.y + rect.height * fy;
        if (inside(x, y) && hits(element, x, y)) return { x, y, covered: false };
      }
  const rect = rects[0];
  return rect && { x: rect.x + rect.width / 2, y: rect.y + rect.height / 2, covered: true };
};

// A locked pointer sends every click to whoever holds it; a person presses Escape first.
const freePointer = async () => {
  if (!document.pointerLockElement) return;
  const freed = new Promise((resolve) => document.addEventListener('pointerlockchange', resolve, { once: true }));
  document.exitPointerLock();
  await Promise.race([freed, new Promise((resolve) => setTimeout(resolve, 500))]);
};

const locate = async (id) => {
  const element = byId(id);
  if (!element) return { missing: 'it is no longer on the page' };
  await freePointer();
  const select = element.localName === 'option' ? element.closest('select') : null;
  if (select) return { option: true };
  let point = clickPoint(element);
  if (!point || point.covered) {
    element.scrollIntoView({ block: 'center', inline: 'center', behavior: 'instant' });
    point = clickPoint(element);
  }
  return point ?? { missing: 'it is hidden' };
};

const choose = (id) => {
  const element = byId(id);
  if (!element) return { missing: 'it is no longer on the page' };
  const select = element.localName === 'option' ? element.closest('select') : null;
  if (!select) return { click: true };
  return pick(select, element);
};

const pick = (select, option) => {
  if (disabled(select) || option.matches(':disabled')) return { missing: 'it is disabled' };
  select.focus({ preventScroll: true });
  const before = [...select.selectedOptions];
  if (select.multiple) option.selected = !option.selected;
  else option.selected = true;
  close(select);
  const after = [...select.selectedOptions];
  if (before.length !== after.length || before.some((one, index) => one !== after[index])) announce(select);
  return { done: true };
};

// What a real choice fires.
const announce = (element) => {
  element.dispatchEvent(new Event('input', { bubbles: true, composed: true }));
  element.dispatchEvent(new Event('change', { bubbles: true }));
};

const PICKERS = new Set(['date', 'time', 'month', 'week', 'datetime-local', 'color', 'range']);

const focusOn = (id) => {
  const element = byId(id);
  const active = activeElement();
  if (!element || !active) return;
  if (active !== element && !within(element, active)) element.focus?.();
};

// Fields whose keyboard is not plain text take the value whole; everything else is typed by the caller.
const fillWhole = (value) => {
  const element = activeElement();
  if (element?.localName === 'select') {
    const wanted = squeeze(value).toLowerCase();
    const text = (option) => squeeze(option.label || option.text).toLowerCase();
    const options = [...element.options].filter((option) => !option.matches(':disabled'));
    const option =
      options.find((one) => text(one) === wanted || one.value.toLowerCase() === wanted) ??
      options.find((one) => text(one).startsWith(wanted)) ??
      options.find((one) => wanted && text(one).includes(wanted));
    if (!option) return { refused: `no option of the list reads ${JSON.stringify(value)}` };
    return pick(element, option).done ? { done: 'select' } : { refused: 'that option is disabled' };
  }
  if (element?.localName !== 'input' || !PICKERS.has(element.type) || element.readOnly) return {};
  const setter = Object.getOwnPropertyDescriptor(element.ownerDocument.defaultView.HTMLInputElement.prototype, 'value').set;
  const before = element.value;
  setter.call(element, value.trim());
  if (element.value === '' && value.trim() !== '') {
    setter.call(element, before);
    return { refused: `an input of type ${element.type} does not take ${JSON.stringify(value)}` };
  }
  announce(element);
  return { done: 'input' };
};

const STEP = { up: [0, -1], down: [0, 1], left: [-1, 0], right: [1, 0] };
const scrollable = (element, [dx, dy]) => {
  const style = styleOf(element);
  const root = element === element.ownerDocument.scrollingElement;
  const open = (overflow) => root || /(auto|scroll|overlay)/.test(overflow);
  return (
    (dy !== 0 && open(style.overflowY) && element.scrollHeight > element.clientHeight + 1) ||
    (dx !== 0 && open(style.overflowX) && element.scrollWidth > element.clientWidth + 1)
  );
};

const nearestScrollable = (start, step) => {
  for (let at = start; at; ) {
    if (at instanceof Element || at.nodeType === Node.ELEMENT_NODE) {
      if (scrollable(at, step)) return at;
    }
    at = flatParent(at) ?? (at.nodeType === Node.DOCUMENT_NODE ? holders.get(at) : null);
  }
  return null;
};

const scrollBy = (element, [dx, dy], share) =>
  element.scrollBy({ left: dx * element.clientWidth * share, top: dy * element.clientHeight * share, behavior: 'instant' });

const scrollId = (id, direction) => {
  const element = byId(id);
  if (!element) return { missing: 'it is no longer on the page' };
  const list = element.localName === 'option' ? element.closest('select') : element;
  if (list === openSelect()) {
    scrollRows(list, STEP[direction]);
    return { done: true };
  }
  const target = nearestScrollable(element, STEP[direction]);
  if (target) scrollBy(target, STEP[direction], 1);
  return { done: true };
};

const scrollAt = (x, y, direction) => {
  if (scrollRowsAt(x, y, direction)) return { done: true };
  const hit = deepest(x, y);
  const target = hit && nearestScrollable(hit, STEP[direction]);
  if (!target || target === document.scrollingElement) return { wheel: true };
  scrollBy(target, STEP[direction], 0.8);
  return { done: true };
};
