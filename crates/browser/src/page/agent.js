// Runs in an isolated world of the main frame: sees the page's DOM, is not seen by the page's scripts.
// Everything the browser crate asks of a document goes through the functions of `api` at the end.
(() => {
  if (globalThis.__webgym) return;

  // --- identity: an element keeps its id while it lives in the document ---
  const ids = new WeakMap();
  const elements = new Map();
  const forget = new FinalizationRegistry((id) => elements.delete(id));
  let nextId = 1;

  const idOf = (element) => {
    let id = ids.get(element);
    if (id === undefined) {
      id = String(nextId++);
      ids.set(element, id);
      elements.set(id, new WeakRef(element));
      forget.register(element, id);
    }
    return id;
  };

  const byId = (id) => {
    const element = elements.get(String(id))?.deref();
    return element?.isConnected && reachable(element.ownerDocument) ? element : null;
  };

  // --- frames: coordinates and visibility across same-process iframes ---
  const holders = new WeakMap(); // document -> the iframe element that shows it

  const inner = (frame) => {
    try {
      const doc = frame.contentDocument;
      if (doc?.documentElement) holders.set(doc, frame);
      return doc?.documentElement ? doc : null;
    } catch {
      return null;
    }
  };

  // A link to another program (mailto:, tel:, an app's own scheme) leads nowhere from here; the full browser
  // would leave the page over it.
  const INSIDE = /^(https?|about|blob|data|javascript|file|chrome):$/;
  const stayInside = (event) => {
    const link = event.composedPath().find((node) => node.localName === 'a' || node.localName === 'area');
    if (link?.protocol && !INSIDE.test(link.protocol)) event.preventDefault();
  };

  // A pressed drop-down would open a window of its own, which no picture shows whole and no number reaches. It
  // gets the focus instead, and its options are listed with the other elements.
  const dropsDown = (element) => element.localName === 'select' && !element.multiple && element.size <= 1;
  const keepShut = (event) => {
    const select = event.composedPath().find((node) => node.localName === 'select');
    if (!select || !dropsDown(select) || event.button !== 0) return;
    event.preventDefault();
    select.focus({ preventScroll: true });
  };
  // Opened by a key or a script after all.
  const shut = (select) => {
    if (!select.matches(':open')) return;
    select.blur();
    select.focus({ preventScroll: true });
  };

  const reachable = (doc) => {
    for (let at = doc; at !== document; ) {
      const frame = holders.get(at);
      if (!frame?.isConnected || frame.contentDocument !== at) return false;
      at = frame.ownerDocument;
    }
    return true;
  };

  const isFrame = (element) => element.localName === 'iframe' || element.localName === 'frame';

  // Where the content of a frame begins, in its parent's viewport.
  const contentOrigin = (frame) => {
    const box = frame.getBoundingClientRect();
    const style = frame.ownerDocument.defaultView.getComputedStyle(frame);
    return {
      x: box.left + frame.clientLeft + (parseFloat(style.paddingLeft) || 0),
      y: box.top + frame.clientTop + (parseFloat(style.paddingTop) || 0),
    };
  };

  const offsetOf = (doc) => {
    let x = 0;
    let y = 0;
    for (let at = doc; at !== document; ) {
      const frame = holders.get(at);
      const origin = contentOrigin(frame);
      x += origin.x;
      y += origin.y;
      at = frame.ownerDocument;
    }
    return { x, y };
  };

  const flatParent = (node) => {
    const parent = node.assignedSlot ?? node.parentNode;
    // Not any parent with a `host`: links have one too, of another kind.
    return parent?.nodeType === Node.DOCUMENT_FRAGMENT_NODE ? parent.host : parent;
  };

  const within = (outer, node) => {
    for (let at = node; at; at = flatParent(at)) if (at === outer) return true;
    return false;
  };

  // The element a person would hit at a point of the top viewport.
  const deepest = (x, y) => {
    let doc = document;
    let at = { x, y };
    for (;;) {
      let element = doc.elementFromPoint(at.x, at.y);
      while (element?.shadowRoot) {
        const deeper = element.shadowRoot.elementFromPoint(at.x, at.y);
        if (!deeper || deeper === element) break;
        element = deeper;
      }
      const next = element && isFrame(element) ? inner(element) : null;
      if (!next) return element;
      const origin = contentOrigin(element);
      at = { x: at.x - origin.x, y: at.y - origin.y };
      doc = next;
    }
  };

  const activeElement = () => {
    let element = document.activeElement;
    for (;;) {
      if (element?.shadowRoot?.activeElement) element = element.shadowRoot.activeElement;
      else if (element && isFrame(element) && inner(element)?.activeElement) element = inner(element).activeElement;
      else return element;
    }
  };

  // --- what is interactive ---
  const ROLES = new Set(
    ('button link checkbox radio tab menuitem menuitemcheckbox menuitemradio option combobox listbox textbox ' +
      'searchbox switch slider spinbutton treeitem scrollbar').split(' '),
  );
  const CURSORS = new Set('pointer grab zoom-in zoom-out cell copy alias context-menu'.split(' '));
  const NATIVE = 'input:not([type=hidden i]), select, textarea, button, [href], [onclick], summary, [contenteditable]:not([contenteditable=false i])';

  const disabled = (element) => element.matches(':disabled') || element.getAttribute('aria-disabled') === 'true';
  const seen = (element) => element.checkVisibility({ opacityProperty: true, visibilityProperty: true, contentVisibilityAuto: true });
  const styleOf = (element) => element.ownerDocument.defaultView.getComputedStyle(element);
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

  const plain = (rect, origin) => ({ x: rect.left + origin.x, y: rect.top + origin.y, width: rect.width, height: rect.height });
  const solid = (rect) => rect.width >= 1 && rect.height >= 1;

  const boxes = (element, origin) => {
    let rects = [...element.getClientRects()].filter(solid);
    // An inline link around a block or a float has no box of its own worth clicking: its children have.
    if (rects.length === 0) rects = [...element.children].flatMap((child) => [...child.getClientRects()]).filter(solid);
    return rects.slice(0, 20).map((rect) => plain(rect, origin));
  };

  const squeeze = (text) => (text ?? '').replace(/\s+/g, ' ').trim().slice(0, 300);

  const nameOf = (element) => {
    const byIdText = (list) =>
      list.split(/\s+/).map((id) => element.getRootNode().getElementById?.(id)?.textContent ?? '').join(' ');
    const button = /^(submit|button|reset)$/i.test(element.type ?? '') && element.localName === 'input';
    const candidates = [
      () => element.getAttribute('aria-label'),
      () => element.hasAttribute('aria-labelledby') && byIdText(element.getAttribute('aria-labelledby')),
      () => element.labels && [...element.labels].map((label) => label.innerText).join(' '),
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

  // --- options of a drop-down that has the focus: they have no boxes, so they get a list drawn for them ---
  const ROW = 24;
  const dropDown = (select, origin, viewport) => {
    if (!dropsDown(select)) return [];
    shut(select);
    const options = [...select.options].filter((option) => !option.disabled && !option.parentElement.disabled && !option.hidden);
    const box = select.getBoundingClientRect();
    const x = box.left + origin.x;
    const below = box.bottom + origin.y;
    const room = Math.max(1, Math.floor((viewport.height - below) / ROW));
    const above = Math.max(1, Math.floor((box.top + origin.y) / ROW));
    const up = room < options.length && above > room;
    const rows = up ? above : room;
    // Keep the chosen one in sight when the list is longer than the room for it.
    const chosen = Math.max(0, options.indexOf(select.selectedOptions[0]));
    const first = options.length <= rows ? 0 : Math.min(Math.max(0, chosen - (rows >> 1)), options.length - rows);
    const top = up ? box.top + origin.y - Math.min(rows, options.length) * ROW : below;
    const width = Math.max(box.width, 140);
    return options.map((option, index) => ({
      ...region(option, [{ x, y: top + (index - first) * ROW, width, height: ROW }], styleOf(select)),
      aria_name: squeeze(option.label || option.text) || option.value,
      option: { chosen: option.selected, place: index < first ? 'above' : index >= first + rows ? 'below' : 'shown' },
    }));
  };

  const place = (element, rects, viewport) => {
    const [lead] = rects;
    if (!lead) return null;
    const size = Math.max(...rects.map((rect) => rect.width * rect.height));
    for (const rect of rects) {
      const x = rect.x + rect.width / 2;
      const y = rect.y + rect.height / 2;
      if (x < 0 || y < 0 || x >= viewport.width || y >= viewport.height) continue;
      const hit = deepest(x, y);
      const mine = hit && (within(element, hit) || (element.localName === 'label' && hit === element.control));
      if (mine) return size > 0.9 * viewport.width * viewport.height ? null : { at: 'shown', rect };
    }
    const middle = lead.y + lead.height / 2;
    if (middle < 0) return { at: 'above' };
    return middle >= viewport.height ? { at: 'below' } : null;
  };

  const collect = () => {
    const viewport = { width: innerWidth, height: innerHeight };
    const focused = activeElement();
    const found = [];
    const cursors = new Map();
    const visit = (root, origin, parentCursor) => {
      const filter = (element) => {
        const style = styleOf(element);
        if (style.display === 'none' || element.inert) return NodeFilter.FILTER_REJECT;
        const parent = element.assignedSlot ?? element.parentElement;
        const before = parent && cursors.has(parent) ? cursors.get(parent) : parentCursor;
        cursors.set(element, style.cursor);
        if (element.shadowRoot) {
          watch(element.shadowRoot);
          visit(element.shadowRoot, origin, style.cursor);
        }
        if (isFrame(element) && seen(element)) {
          const doc = inner(element);
          const start = contentOrigin(element);
          if (doc) {
            watch(doc);
            visit(doc.documentElement, { x: origin.x + start.x, y: origin.y + start.y }, 'auto');
          }
        }
        if (invites(element, style.cursor, before) && !disabled(element) && seen(element)) {
          const rects = boxes(element, origin);
          const spot = place(element, rects, viewport);
          if (spot) found.push({ ...region(element, rects, style), place: spot.at, mark: spot.rect });
        }
        if (element === focused && element.localName === 'select') {
          for (const { option, ...rest } of dropDown(element, origin, viewport))
            found.push({ ...rest, place: option.place, mark: rest.rects[0], option: { chosen: option.chosen } });
        }
        const list = element.localName === 'option' ? element.closest('select') : null;
        if (list && (list.multiple || list.size > 1) && !disabled(element) && !disabled(list) && seen(element)) {
          const rects = boxes(element, origin);
          const spot = inListBox(list, element) ? (place(element, rects, viewport) ?? place(list, rects, viewport)) : null;
          if (spot) found.push({ ...region(element, rects, style), place: spot.at, mark: spot.rect });
        }
        return NodeFilter.FILTER_ACCEPT;
      };
      if (root instanceof Element || root.nodeType === Node.ELEMENT_NODE) {
        if (filter(root) === NodeFilter.FILTER_REJECT) return;
      }
      const walker = root.ownerDocument.createTreeWalker(root, NodeFilter.SHOW_ELEMENT, filter);
      while (walker.nextNode());
    };
    visit(document.documentElement, { x: 0, y: 0 }, 'auto');
    return { elements: uncovered(found) };
  };

  // An open list lies over what is behind it.
  const uncovered = (found) => {
    const rows = found.filter((one) => one.option && one.place === 'shown').map((one) => one.mark);
    const covered = ({ option, place, mark }) => {
      if (option || place !== 'shown') return false;
      const [x, y] = [mark.x + mark.width / 2, mark.y + mark.height / 2];
      return rows.some((row) => x >= row.x && x < row.x + row.width && y >= row.y && y < row.y + row.height);
    };
    return found.filter((one) => !covered(one));
  };

  const inListBox = (select, option) => {
    const outer = select.getBoundingClientRect();
    const box = option.getBoundingClientRect();
    const middle = (box.top + box.bottom) / 2;
    return middle >= outer.top && middle <= outer.bottom;
  };

  // --- pointing at an element ---
  const GRID = [0.5, 0.25, 0.75, 0.1, 0.9];
  const clickPoint = (element) => {
    const rects = boxes(element, offsetOf(element.ownerDocument));
    const inside = (x, y) => x >= 0 && y >= 0 && x < innerWidth && y < innerHeight;
    const mine = (x, y) => {
      const hit = deepest(x, y);
      return hit && (within(element, hit) || (element.localName === 'label' && hit === element.control));
    };
    for (const fy of GRID)
      for (const fx of GRID)
        for (const rect of rects) {
          const x = rect.x + rect.width * fx;
          const y = rect.y + rect.height * fy;
          if (inside(x, y) && mine(x, y)) return { x, y, covered: false };
        }
    const rect = rects[0];
    return rect && { x: rect.x + rect.width / 2, y: rect.y + rect.height / 2, covered: true };
  };

  const locate = (id) => {
    const element = byId(id);
    if (!element) return { missing: 'it is no longer on the page' };
    const select = element.localName === 'option' ? element.closest('select') : null;
    if (select) return { option: true };
    let point = clickPoint(element);
    if (!point || point.covered) {
      element.scrollIntoView({ block: 'center', inline: 'center', behavior: 'instant' });
      point = clickPoint(element);
    }
    return point ? { ...point, select: element.localName === 'select' } : { missing: 'it is hidden' };
  };

  const choose = (id) => {
    const element = byId(id);
    if (!element) return { missing: 'it is no longer on the page' };
    const select = element.localName === 'option' ? element.closest('select') : null;
    if (!select) return { click: true };
    return pick(select, element);
  };

  const pick = (select, option) => {
    if (disabled(select) || option.disabled) return { missing: 'it is disabled' };
    select.focus({ preventScroll: true });
    const before = [...select.selectedOptions];
    if (select.multiple) option.selected = !option.selected;
    else option.selected = true;
    const after = [...select.selectedOptions];
    if (before.length !== after.length || before.some((one, index) => one !== after[index])) announce(select);
    return { done: true };
  };

  // What a real choice fires.
  const announce = (element) => {
    element.dispatchEvent(new Event('input', { bubbles: true, composed: true }));
    element.dispatchEvent(new Event('change', { bubbles: true }));
  };

  // --- typing ---
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
      const options = [...element.options].filter((option) => !option.disabled);
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

  // --- scrolling ---
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
    const target = nearestScrollable(element, STEP[direction]);
    if (target) scrollBy(target, STEP[direction], 1);
    return { done: true };
  };

  const scrollAt = (x, y, direction) => {
    const hit = deepest(x, y);
    const target = hit && nearestScrollable(hit, STEP[direction]);
    if (!target || target === document.scrollingElement) return { wheel: true };
    scrollBy(target, STEP[direction], 0.8);
    return { done: true };
  };

  // --- reading ---
  const metadata = () => {
    const metaTags = {};
    for (const meta of document.querySelectorAll('meta[name], meta[property]')) {
      const key = meta.getAttribute('name') || meta.getAttribute('property');
      if (key && meta.content) metaTags[key.slice(0, 200)] = meta.content.slice(0, 2000);
    }
    const jsonld = [];
    for (const script of [...document.querySelectorAll('script[type="application/ld+json"]')].slice(0, 20)) {
      try {
        if (script.textContent.length < 100000) jsonld.push(JSON.parse(script.textContent));
      } catch {
        // Not JSON: not ours to mend.
      }
    }
    const item = (scope, depth) => {
      const properties = {};
      for (const holder of scope.querySelectorAll('[itemprop]')) {
        if (holder.parentElement.closest('[itemscope]') !== scope) continue;
        const value = holder.hasAttribute('itemscope') && depth < 5 ? item(holder, depth + 1) : itemValue(holder);
        (properties[holder.getAttribute('itemprop')] ??= []).push(value);
      }
      return { type: scope.getAttribute('itemtype') ?? '', properties };
    };
    const itemValue = (holder) => squeeze(holder.content ?? holder.getAttribute('content') ?? holder.href ?? holder.src ?? holder.dateTime ?? holder.textContent);
    const scopes = [...document.querySelectorAll('[itemscope]')].filter((scope) => !scope.parentElement?.closest('[itemscope]'));
    const microdata = scopes.slice(0, 50).map((scope) => item(scope, 0));
    return {
      title: document.title.slice(0, 4096),
      url: location.href.slice(0, 65536),
      ...(Object.keys(metaTags).length && { meta_tags: metaTags }),
      ...(jsonld.length && { jsonld }),
      ...(microdata.length && { microdata }),
    };
  };

  const text = (lines) =>
    (document.body?.innerText ?? '').split('\n').map((line) => line.trim()).filter(Boolean).slice(0, lines).join('\n');

  // --- settling ---
  let lastChange = -Infinity;
  const watched = new WeakSet();
  const observer = new MutationObserver(() => {
    lastChange = performance.now();
  });
  const watch = (root) => {
    if (watched.has(root)) return;
    watched.add(root);
    if (root.nodeType === Node.DOCUMENT_NODE) {
      root.addEventListener('click', stayInside, { capture: true });
      root.addEventListener('mousedown', keepShut, { capture: true });
    }
    observer.observe(root, { subtree: true, childList: true, characterData: true, attributes: true });
  };
  watch(document);

  // Short animations that end by themselves: worth waiting for. Endless or long ones are not.
  const animating = () =>
    document.getAnimations().some((animation) => {
      if (animation.playState !== 'running') return false;
      const { endTime, duration } = animation.effect?.getComputedTiming() ?? {};
      return Number.isFinite(endTime) && duration > 0 && endTime <= 1500 && endTime - (animation.currentTime ?? 0) > 0;
    });

  // Resolves when two frames were drawn, nothing short is still moving, and, if anything changed since the
  // action `elapsed` ms ago, nothing has changed for `still` ms. Gives up after `limit` ms.
  const quiet = (elapsed, still, limit) =>
    new Promise((resolve) => {
      // A locked pointer would swallow every further click.
      if (document.pointerLockElement) document.exitPointerLock();
      const start = performance.now();
      let frames = 0;
      const frame = () => {
        let done = false;
        const go = () => {
          if (done) return;
          done = true;
          clearTimeout(timer);
          check();
        };
        const timer = setTimeout(go, 50); // frames stop coming when nothing draws them
        requestAnimationFrame(go);
      };
      const check = () => {
        frames += 1;
        const now = performance.now();
        const changed = lastChange >= start - elapsed;
        const calm = !changed || now - lastChange >= still;
        if (frames >= 2 && calm && !animating()) resolve({ quiet: true, changed });
        else if (now - start >= limit) resolve({ quiet: false, changed });
        else frame();
      };
      frame();
    });

  const size = () => ({ width: innerWidth, height: innerHeight });

  globalThis.__webgym = { collect, locate, choose, focusOn, fillWhole, scrollId, scrollAt, metadata, text, quiet, size };
})();
