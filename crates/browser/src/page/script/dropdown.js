// Drop-down lists. A mouse press would open a native popup window, which not every screenshot shows and which has no
// element ids. Instead, the press only focuses the select, and its rows are computed here for screenshots and marks.

const ROW_HEIGHT = 24;
const MIN_ROW_WIDTH = 140;

const openedByMouse = new WeakSet();
const closedSelects = new WeakSet(); // closed by a choice, a key or a press elsewhere; they may still have the focus
const firstRows = new WeakMap(); // select -> index of the first visible row, if the list was scrolled

const isDropdown = (element) => element?.localName === 'select' && !element.multiple && element.size <= 1;

const closeDropdown = (select) => {
  openedByMouse.delete(select);
  closedSelects.add(select);
  firstRows.delete(select);
};

const resetDropdown = (select) => {
  closeDropdown(select);
  closedSelects.delete(select);
};

const onMouseDown = (event) => {
  const select = event.composedPath().find(isDropdown);
  const focused = focusedElement();
  if (isDropdown(focused) && focused !== select) closeDropdown(focused);
  if (!select || event.button !== 0 || isDisabled(select)) return;
  event.preventDefault();
  select.focus({ preventScroll: true });
  closedSelects.delete(select);
  openedByMouse.add(select);
};

const onKeyDown = (event) => {
  const select = focusedElement();
  if (isDropdown(select) && (event.key === 'Escape' || event.key === 'Enter')) closeDropdown(select);
};

const onFocusOut = (event) => {
  const select = event.composedPath().find(isDropdown);
  if (select) resetDropdown(select);
};

// The drop-down whose list counts as open: it has the focus and was not closed.
const openDropdown = () => {
  const select = focusedElement();
  if (!isDropdown(select) || isDisabled(select) || closedSelects.has(select)) return null;
  // A key or a script opened the native popup, which would cover our rows: close it.
  if (select.matches(':open')) {
    select.blur();
    select.focus({ preventScroll: true });
    openedByMouse.add(select);
  }
  return select;
};

// The rows of a list: below its select, or above it if there is more space; as many as fit, around the selected one.
const dropdownRows = (select) => {
  const options = [...select.options].filter((option) => !option.matches(':disabled') && !option.hidden);
  const box = toPageRect(select.getBoundingClientRect(), documentTransform(select.ownerDocument));
  const below = Math.max(1, Math.floor((innerHeight - box.y - box.height) / ROW_HEIGHT));
  const above = Math.max(1, Math.floor(box.y / ROW_HEIGHT));
  const opensUp = below < options.length && above > below;
  const fitting = Math.min(opensUp ? above : below, options.length);
  const selected = Math.max(0, options.indexOf(select.selectedOptions[0]));
  const preferred = firstRows.get(select) ?? selected - (fitting >> 1);
  const first = Math.max(0, Math.min(preferred, options.length - fitting));
  const top = opensUp ? box.y - fitting * ROW_HEIGHT : box.y + box.height;
  const rows = options.map((option, index) => ({
    option,
    text: collapseSpaces(option.label || option.text) || option.value,
    selected: option.selected,
    position: index < first ? 'above' : index >= first + fitting ? 'below' : 'visible',
    rect: { x: box.x, y: top + (index - first) * ROW_HEIGHT, width: Math.max(box.width, MIN_ROW_WIDTH), height: ROW_HEIGHT },
  }));
  return { rows, first, fitting };
};

// The rows that a screenshot without marks must show.
const openDropdownRows = () => {
  const select = openDropdown();
  if (!select || !openedByMouse.has(select)) return [];
  const visible = dropdownRows(select).rows.filter((row) => row.position === 'visible');
  return visible.map(({ text, selected, rect }) => ({ text, selected, rect }));
};

const dropdownRowAt = (x, y) => {
  const select = openDropdown();
  if (!select || !openedByMouse.has(select)) return null;
  const row = dropdownRows(select).rows.find(({ position, rect }) => position === 'visible' && containsPoint(rect, x, y));
  return row ? { select, option: row.option } : null;
};

// Selects the row of an open list at a point. Returns false if there is none.
const clickDropdownRow = async (x, y) => {
  await releasePointerLock();
  const row = dropdownRowAt(x, y);
  return Boolean(row && selectOption(row.select, row.option).done);
};

const scrollDropdown = (select, [, dy]) => {
  const { first, fitting } = dropdownRows(select);
  firstRows.set(select, first + dy * Math.max(1, fitting - 1));
};

const scrollDropdownAt = (x, y, direction) => {
  const row = dropdownRowAt(x, y);
  if (row) scrollDropdown(row.select, SCROLL_STEPS[direction]);
  return Boolean(row);
};

// Removes the elements that the rows of an open list cover.
const withoutCovered = (found) => {
  const rows = found.filter(({ option, position }) => option && position === 'visible').map(({ mark }) => mark);
  const isCovered = ({ option, position, mark }) =>
    !option && position === 'visible' && rows.some((row) => containsPoint(row, mark.x + mark.width / 2, mark.y + mark.height / 2));
  return found.filter((element) => !isCovered(element));
};
