// Which elements are interactive, and their names and roles.

const INTERACTIVE_ROLES = new Set(
  ('button link checkbox radio tab menuitem menuitemcheckbox menuitemradio option combobox listbox textbox ' +
    'searchbox switch slider spinbutton treeitem scrollbar').split(' '),
);
const INTERACTIVE_CURSORS = new Set('pointer grab zoom-in zoom-out cell copy alias context-menu'.split(' '));
const INTERACTIVE_SELECTOR = 'input:not([type=hidden i]), select, textarea, button, [href], [onclick], summary, [contenteditable]:not([contenteditable=false i])';

const isDisabled = (element) => element.matches(':disabled') || element.getAttribute('aria-disabled') === 'true';
const isVisible = (element) => element.checkVisibility({ opacityProperty: true, visibilityProperty: true, contentVisibilityAuto: true });
const explicitRole = (element) => (element.getAttribute('role') ?? '').trim().split(/\s+/)[0].toLowerCase();

// A cursor counts only on the element that sets it, not where it is inherited.
const isInteractive = (element, cursor, parentCursor) => {
  if (element.localName === 'option') return false; // collected with its select
  if (element.localName === 'link' || element.localName === 'base') return false;
  if (element.matches(INTERACTIVE_SELECTOR) || INTERACTIVE_ROLES.has(explicitRole(element))) return true;
  const tabindex = element.getAttribute('tabindex');
  if (tabindex !== null && parseInt(tabindex, 10) >= 0) return true;
  // A styled check box: the input itself is invisible and users click its label.
  if (element.localName === 'label' && element.control && !isDisabled(element.control) && !isVisible(element.control)) return true;
  return cursor !== parentCursor && INTERACTIVE_CURSORS.has(cursor);
};

const hasArea = (rect) => rect.width >= 1 && rect.height >= 1;

// Sliders and check boxes of many libraries are inputs that are clipped to a pixel. Users see and operate the element around
// them. What is larger than this is visible itself.
const MAX_CLIPPED_SIDE = 2;
const MIN_STAND_IN_SIDE = 6;
const MAX_STAND_IN_DEPTH = 4;
const isClipped = (element, control) => {
  const { width, height } = element.getBoundingClientRect();
  return Math.max(width, height) <= MAX_CLIPPED_SIDE && (element === control || styleOf(element).overflowX !== 'visible');
};

// The element whose boxes show a control: the control itself or, if it is clipped, the nearest visible element around it
// that contains no other control.
const visibleBoxOf = (control) => {
  if (control.localName !== 'input') return control;
  let clipped = false;
  for (let element = control, depth = 0; depth <= MAX_STAND_IN_DEPTH; element = flatTreeParent(element), depth += 1) {
    if (element?.nodeType !== Node.ELEMENT_NODE) break;
    const { width, height } = element.getBoundingClientRect();
    if (clipped && Math.min(width, height) >= MIN_STAND_IN_SIDE)
      return element.querySelectorAll(INTERACTIVE_SELECTOR).length > 1 ? control : element;
    clipped ||= isClipped(element, control);
  }
  return control;
};

const MAX_RECTS = 20;
const pageRects = (element, transform) => {
  const box = visibleBoxOf(element);
  let rects = [...box.getClientRects()].filter(hasArea);
  // An inline link around a block or a float has no clickable box of its own; use those of its children.
  if (rects.length === 0) rects = [...box.children].flatMap((child) => [...child.getClientRects()]).filter(hasArea);
  return rects.slice(0, MAX_RECTS).map((rect) => toPageRect(rect, transform));
};

// Whether a click at this point of the page reaches the element.
const receivesClick = (element, x, y) => {
  const hit = topmostElement(x, y);
  return hit && (isInside(hit, visibleBoxOf(element)) || (element.localName === 'label' && hit === element.control));
};

const MAX_NAME_LENGTH = 300;
const collapseSpaces = (text) => (text ?? '').replace(/\s+/g, ' ').trim().slice(0, MAX_NAME_LENGTH);

// The text of a label, without the text of a select or textarea inside it.
const labelText = (label, control) => {
  if (!label.contains(control) || !/^(select|textarea)$/.test(control.localName)) return label.innerText;
  const textOf = (node) => (node === control ? '' : node.nodeType === Node.TEXT_NODE ? node.data : [...node.childNodes].map(textOf).join(' '));
  return textOf(label);
};

// The first candidate that is not empty is the name.
const nameOf = (element) => {
  const textByIds = (list) =>
    list.split(/\s+/).map((id) => element.getRootNode().getElementById?.(id)?.textContent ?? '').join(' ');
  const button = /^(submit|button|reset)$/i.test(element.type ?? '') && element.localName === 'input';
  const candidates = [
    () => element.getAttribute('aria-label'),
    () => element.hasAttribute('aria-labelledby') && textByIds(element.getAttribute('aria-labelledby')),
    () => element.labels && [...element.labels].map((label) => labelText(label, element)).join(' '),
    () => button && element.value,
    () => element.getAttribute('name'),
    () => element.getAttribute('alt'),
    () => element.getAttribute('title'),
    () => (element.localName === 'select' ? '' : (element.innerText ?? element.textContent)),
    () => element.getAttribute('placeholder'),
    () => element.querySelector?.('img[alt]')?.alt,
    () => element.querySelector?.('svg title')?.textContent,
    () => button && element.type,
  ];
  for (const candidate of candidates) {
    const name = collapseSpaces(candidate() || '');
    if (name) return name;
  }
  return '';
};

const INPUT_ROLES = { button: 'button', submit: 'button', reset: 'button', image: 'button', checkbox: 'checkbox', radio: 'radio', range: 'slider', number: 'spinbutton', search: 'searchbox' };
const TAG_ROLES = { a: 'link', area: 'link', button: 'button', textarea: 'textbox', option: 'option', summary: 'button' };

const roleOf = (element) => {
  const explicit = explicitRole(element);
  if (explicit) return explicit;
  if (element.localName === 'input') return INPUT_ROLES[element.type] ?? 'textbox';
  if (element.localName === 'select') return element.multiple || element.size > 1 ? 'listbox' : 'combobox';
  if (element.localName === 'a' && !element.hasAttribute('href')) return '';
  return TAG_ROLES[element.localName] ?? (element.isContentEditable ? 'textbox' : '');
};

const isVerticallyScrollable = (element, style) =>
  /(auto|scroll|overlay)/.test(style.overflowY) && element.scrollHeight > element.clientHeight + 1;

const region = (element, rects, style) => ({
  id: idOf(element),
  tag_name: element.localName === 'input' ? `input, type=${element.type}` : element.localName,
  role: roleOf(element),
  aria_name: nameOf(element),
  v_scrollable: isVerticallyScrollable(element, style),
  rects,
});
