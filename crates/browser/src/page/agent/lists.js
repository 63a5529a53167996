// Drop-downs. Pressed, one would open a window of its own, which not every picture shows and no number reaches.
// It gets the focus instead, and a list of rows that exists in pictures and in answers only.

const ROW = 24;
const NARROWEST = 140;

const opened = new WeakSet(); // by a press of the mouse
const closed = new WeakSet(); // by a choice, a key or a press elsewhere, though they may have kept the focus
const firstRow = new WeakMap(); // where a long list was scrolled to

const dropsDown = (element) => element?.localName === 'select' && !element.multiple && element.size <= 1;

const close = (select) => {
  opened.delete(select);
  closed.add(select);
  firstRow.delete(select);
};

const reset = (select) => {
  close(select);
  closed.delete(select);
};

const pressed = (event) => {
  const select = event.composedPath().find(dropsDown);
  const focused = activeElement();
  if (dropsDown(focused) && focused !== select) close(focused);
  if (!select || event.button !== 0 || disabled(select)) return;
  event.preventDefault();
  select.focus({ preventScroll: true });
  closed.delete(select);
  opened.add(select);
};

const keyed = (event) => {
  const select = activeElement();
  if (dropsDown(select) && (event.key === 'Escape' || event.key === 'Enter')) close(select);
};

const left = (event) => {
  const select = event.composedPath().find(dropsDown);
  if (select) reset(select);
};

// The drop-down whose list is to be seen: it has the focus and was not closed.
const openSelect = () => {
  const select = activeElement();
  if (!dropsDown(select) || disabled(select) || closed.has(select)) return null;
  // Opened by a key or a script after all: its own window would lie over ours.
  if (select.matches(':open')) {
    select.blur();
    select.focus({ preventScroll: true });
    opened.add(select);
  }
  return select;
};

// The rows of a list: below its select, or above where there is more room; as many as fit, around the chosen one.
const rowsOf = (select) => {
  const options = [...select.options].filter((option) => !option.matches(':disabled') && !option.hidden);
  const box = onPage(select.getBoundingClientRect(), viewFor(select.ownerDocument));
  const below = Math.max(1, Math.floor((innerHeight - box.y - box.height) / ROW));
  const above = Math.max(1, Math.floor(box.y / ROW));
  const up = below < options.length && above > below;
  const fit = Math.min(up ? above : below, options.length);
  const chosen = Math.max(0, options.indexOf(select.selectedOptions[0]));
  const wanted = firstRow.get(select) ?? chosen - (fit >> 1);
  const first = Math.max(0, Math.min(wanted, options.length - fit));
  const top = up ? box.y - fit * ROW : box.y + box.height;
  const rows = options.map((option, index) => ({
    option,
    text: squeeze(option.label || option.text) || option.value,
    chosen: option.selected,
    place: index < first ? 'above' : index >= first + fit ? 'below' : 'shown',
    rect: { x: box.x, y: top + (index - first) * ROW, width: Math.max(box.width, NARROWEST), height: ROW },
  }));
  return { rows, first, fit };
};

// What a picture without marks has to show of an open list.
const openRows = () => {
  const select = openSelect();
  if (!select || !opened.has(select)) return [];
  const shown = rowsOf(select).rows.filter((row) => row.place === 'shown');
  return shown.map(({ text, chosen, rect }) => ({ text, chosen, rect }));
};

const rowAt = (x, y) => {
  const select = openSelect();
  if (!select || !opened.has(select)) return null;
  const row = rowsOf(select).rows.find((one) => one.place === 'shown' && holds(one.rect, x, y));
  return row ? { select, option: row.option } : null;
};

// A click at a point: on a row of the open list it chooses.
const clickRow = async (x, y) => {
  await freePointer();
  const row = rowAt(x, y);
  return Boolean(row && pick(row.select, row.option).done);
};

const scrollRows = (select, [, dy]) => {
  const { first, fit } = rowsOf(select);
  firstRow.set(select, first + dy * Math.max(1, fit - 1));
};

const scrollRowsAt = (x, y, direction) => {
  const row = rowAt(x, y);
  if (row) scrollRows(row.select, STEP[direction]);
  return Boolean(row);
};

// An open list lies over what is behind it.
const uncovered = (found) => {
  const rows = found.filter((one) => one.option && one.place === 'shown').map((one) => one.mark);
  const covered = ({ option, place, mark }) =>
    !option && place === 'shown' && rows.some((row) => holds(row, mark.x + mark.width / 2, mark.y + mark.height / 2));
  return found.filter((one) => !covered(one));
};
