// Finds the elements that a user sees and can click, independently of the code under test. Also records where clicks arrive
// and suppresses their effect.
(() => {
  const roles = ['button', 'link', 'checkbox', 'radio', 'tab', 'menuitem', 'option', 'switch', 'combobox', 'textbox', 'slider'];
  const clickable = ['a[href]', 'button', 'input:not([type=hidden])', 'select', 'textarea', 'summary', '[onclick]', '[data-visible]',
    '[tabindex="0"]', '[contenteditable=true]', '[contenteditable=plaintext-only]', ...roles.map((role) => `[role=${role}]`)].join(',');
  const found = [];
  const hidden = [];
  const screen = { width: innerWidth, height: innerHeight };

  const boxesOf = (element, x, y) => [...element.getClientRects()].map((box) => ({
    x: box.x + x, y: box.y + y, width: box.width, height: box.height,
    top: box.y + y, left: box.x + x, right: box.right + x, bottom: box.bottom + y,
  }));

  // The topmost element at a point, through frames and shadow roots.
  const hit = (x, y) => {
    let root = document;
    for (;;) {
      let element = root.elementFromPoint(x, y);
      while (element && element.shadowRoot && element.shadowRoot.elementFromPoint(x, y) && element.shadowRoot.elementFromPoint(x, y) !== element)
        element = element.shadowRoot.elementFromPoint(x, y);
      let inside = null;
      try { inside = element && element.localName === 'iframe' && element.contentDocument; } catch { inside = null; }
      if (!inside) return element;
      const box = element.getBoundingClientRect();
      x -= box.left + element.clientLeft;
      y -= box.top + element.clientTop;
      root = inside;
    }
  };

  const contains = (outer, node) => {
    for (let current = node; current; current = current.assignedSlot || current.parentNode || current.host) if (current === outer) return true;
    return false;
  };

  const describe = (element, x, y) => ({
    tag: element.localName,
    label: element.outerHTML.slice(0, 120),
    boxes: boxesOf(element, x, y),
  });

  const addIfClickable = (element, x, y) => {
    if (element.matches(':disabled') || element.getAttribute('aria-disabled') === 'true' || element.closest('[inert]')) return;
    if (element.matches('[data-hidden]')) return;
    for (const box of boxesOf(element, x, y)) {
      const middle = { x: box.x + box.width / 2, y: box.y + box.height / 2 };
      if (box.width < 2 || box.height < 2 || middle.x < 0 || middle.y < 0 || middle.x >= screen.width || middle.y >= screen.height) continue;
      if (box.width * box.height > 0.9 * screen.width * screen.height) return;
      if (element.checkVisibility({ opacityProperty: true, visibilityProperty: true }) && contains(element, hit(middle.x, middle.y))) {
        found.push(describe(element, x, y));
        return;
      }
    }
  };

  const listen = (view, x, y) => {
    view.addEventListener('click', (event) => {
      event.preventDefault();
      event.stopImmediatePropagation();
      const path = event.composedPath().filter((node) => node.nodeType === 1);
      top.__clickPath = path.map((element) => describe(element, x, y));
    }, { capture: true });
    for (const kind of ['submit', 'mousedown', 'pointerdown'])
      view.addEventListener(kind, (event) => event.stopImmediatePropagation(), { capture: true });
  };

  const walk = (root, x, y) => {
    for (const element of root.querySelectorAll('*')) {
      if (element.matches('[data-hidden]')) hidden.push(describe(element, x, y));
      if (element.localName !== 'option' && element.matches(clickable)) addIfClickable(element, x, y);
      if (element.shadowRoot) walk(element.shadowRoot, x, y);
      if (element.localName === 'iframe') {
        let inside = null;
        try { inside = element.contentDocument; } catch { inside = null; }
        if (!inside) continue;
        const box = element.getBoundingClientRect();
        const [dx, dy] = [x + box.left + element.clientLeft, y + box.top + element.clientTop];
        if (!inside.defaultView.__listening) { inside.defaultView.__listening = true; listen(inside.defaultView, dx, dy); }
        walk(inside, dx, dy);
      }
    }
  };
  if (!window.__listening) { window.__listening = true; listen(window, 0, 0); }
  walk(document, 0, 0);
  return { found, hidden };
})()
