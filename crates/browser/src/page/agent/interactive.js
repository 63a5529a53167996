// What is interactive, and what it is called.

const ROLES = new Set(
  ('button link checkbox radio tab menuitem menuitemcheckbox menuitemradio option combobox listbox textbox ' +
    'searchbox switch slider spinbutton treeitem scrollbar').split(' '),
);
const CURSORS = new Set('pointer grab zoom-in zoom-out cell copy alias context-menu'.split(' '));
const NATIVE = 'input:not([type=hidden i]), select, textarea, button, [href], [onclick], summary, [contenteditable]:not([contenteditable=false i])';

const disabled = (element) => element.matches(':disabled') || element.getAttribute('aria-disabled') === 'true';
const seen = (element) => element.checkVisibility({ opacityProperty: true, visibilityProperty: true, contentVisibilityAuto: true });
const explicitRole = (element) => (element.getAttribute('role') ?? '').trim().split(/\s+/)[0].toLowerCase();

const invites = (element, cursor, parentCursor) => {
  if (element.localName === 'option') return false; // handled with its select
  if (element.localName === 'link' || element.localName === 'base') return false;
  if (element.matches(NATIVE) || ROLES.has(explicitRole(element))) return true;
  const tabindex = element.getAttribute('tabindex');
  if (tabindex !== null && parseInt(tabindex, 10) >= 0) return true;
  // A styled check box: the input itself is invisible, its label is what a person clicks.
  if (element.localName === 'label' && element.control && !disabled(element.control) && !seen(element.control)) return true;
  return cursor !== parentCursor && CURSORS.has(cursor);
};

const solid = (rect) => rect.width >= 1 && rect.height >= 1;

const boxes = (element, view) => {
  let rects = [...element.getClientRects()].filter(solid);
  // An inline link around a block or a float has no box of its own worth clicking: its children have.
  if (rects.length === 0) rects = [...element.children].flatMap((child) => [...child.getClientRects()]).filter(solid);
  return rects.slice(0, 20).map((rect) => onPage(rect, view));
};

// Whether a click at this point of the page would reach the element.
const hits = (element, x, y) => {
  const hit = deepest(x, y);
  return hit && (within(element, hit) || (element.localName === 'label' && hit === element.control));
};

const squeeze = (text) => (text ?? '').replace(/\s+/g, ' ').trim().slice(0, 300);

// The words of a label, without those of the list or field it holds.
const labelText = (label, control) => {
  if (!label.contains(control) || !/^(select|textarea)$/.test(control.localName)) return label.innerText;
  const words = (node) => (node === control ? '' : node.nodeType === Node.TEXT_NODE ? node.data : [...node.childNodes].map(words).join(' '));
  return words(label);
};

const nameOf = (element) => {
  const byIdText = (list) =>
    list.split(/\s+/).map((id) => element.getRootNode().getElementById?.(id)?.textContent ?? '').join(' ');
  const button = /^(submit|button|reset)$/i.test(element.type ?? '') && element.localName === 'input';
  const candidates = [
    () => element.getAttribute('aria-label'),
    () => element.hasAttribute('aria-labelledby') && byIdText(element.getAttribute('aria-labelledby')),
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
    const name = squeeze(candidate() || '');
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

const scrollsVertically = (element, style) =>
  /(auto|scroll|overlay)/.test(style.overflowY) && element.scrollHeight > element.clientHeight + 1;

const region = (element, rects, style) => ({
  id: idOf(element),
  tag_name: element.localName === 'input' ? `input, type=${element.type}` : element.localName,
  role: roleOf(element),
  aria_name: nameOf(element),
  v_scrollable: scrollsVertically(element, style),
  rects,
});
