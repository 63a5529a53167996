(path) => {
  let root = document;
  let x = 0;
  let y = 0;
  let element = null;
  const parts = path.split('>>').map((part) => part.trim());
  for (const [index, part] of parts.entries()) {
    element = root.querySelector(part);
    if (!element) return null;
    if (index === parts.length - 1) break;
    if (element.shadowRoot) root = element.shadowRoot;
    else {
      const box = element.getBoundingClientRect();
      x += box.left + element.clientLeft;
      y += box.top + element.clientTop;
      root = element.contentDocument;
    }
  }
  const boxes = [...element.getClientRects()].map((box) => ({
    x: box.x + x, y: box.y + y, width: box.width, height: box.height,
    top: box.y + y, left: box.x + x, right: box.right + x, bottom: box.bottom + y,
  }));
  return boxes.length ? { tag: element.localName, boxes } : null;
}
