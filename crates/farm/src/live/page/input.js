// Mouse, wheel and keyboard of a person, as messages with points in CSS pixels of the session's viewport.
const BUTTONS = ['left', 'middle', 'right'];
const LINE_PIXELS = 40;

const modifiersOf = (event) => {
  // AltGr types a character; some systems report it as Control and Alt.
  if (event.getModifierState('AltGraph')) return event.shiftKey ? 8 : 0;
  return (event.altKey ? 1 : 0) | (event.ctrlKey ? 2 : 0) | (event.metaKey ? 4 : 0) | (event.shiftKey ? 8 : 0);
};

export const attachInput = (screen, view, send) => {
  const point = (event) => {
    const box = screen.getBoundingClientRect();
    const scale = (offset, length, size) => Math.round(Math.max(0, Math.min(size - 1, (offset / length) * size)));
    return {
      x: scale(event.clientX - box.left - screen.clientLeft, screen.clientWidth, view.viewport.width),
      y: scale(event.clientY - box.top - screen.clientTop, screen.clientHeight, view.viewport.height),
    };
  };
  const mouse = (name, event) => ({
    type: 'mouse', event: name, ...point(event), button: name === 'move' ? 'none' : BUTTONS[event.button] ?? 'none',
    buttons: event.buttons & 7, modifiers: modifiersOf(event), clicks: name === 'move' ? 0 : Math.min(3, Math.max(1, clicks)),
  });

  // One move and one wheel turn per frame are enough: the page draws no more often.
  let pendingMove = null;
  let pendingWheel = null;
  const flush = () => {
    if (pendingMove) send(pendingMove);
    if (pendingWheel) send(pendingWheel);
    pendingMove = pendingWheel = null;
  };
  const schedule = () => {
    if (!pendingMove && !pendingWheel) requestAnimationFrame(flush);
  };

  let clicks = 1;
  let lastDown = { time: 0, x: 0, y: 0, button: -1 };
  const countClicks = (event) => {
    const { x, y } = point(event);
    const isRepeated = event.timeStamp - lastDown.time < 400 && event.button === lastDown.button && Math.hypot(x - lastDown.x, y - lastDown.y) < 6;
    clicks = isRepeated ? (clicks % 3) + 1 : 1;
    lastDown = { time: event.timeStamp, x, y, button: event.button };
  };

  screen.addEventListener('pointermove', (event) => {
    if (!view.control) return;
    schedule();
    pendingMove = mouse('move', event);
  });
  screen.addEventListener('pointerdown', (event) => {
    if (!view.control) return;
    event.preventDefault();
    screen.focus();
    screen.setPointerCapture(event.pointerId);
    countClicks(event);
    flush();
    send(mouse('down', event));
  });
  screen.addEventListener('pointerup', (event) => {
    if (!view.control) return;
    flush();
    send(mouse('up', event));
  });
  screen.addEventListener('contextmenu', (event) => {
    if (view.control) event.preventDefault();
  });
  screen.addEventListener('wheel', (event) => {
    if (!view.control) return;
    event.preventDefault();
    const unit = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? LINE_PIXELS : 1;
    const before = pendingWheel ?? { dx: 0, dy: 0 };
    schedule();
    pendingWheel = {
      type: 'wheel', ...point(event), dx: before.dx + event.deltaX * unit, dy: before.dy + event.deltaY * unit, modifiers: modifiersOf(event),
    };
  }, { passive: false });

  const key = (name, event) => {
    if (!view.control || event.isComposing) return;
    if (event.key === 'Escape' && event.shiftKey) {
      event.preventDefault();
      if (name === 'down') document.getElementById('url').focus();
      return;
    }
    // Pasting inserts the clipboard of this computer, see below.
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 'v') return;
    event.preventDefault();
    send({
      type: 'key', event: name, key: event.key, code: event.code, key_code: event.keyCode, modifiers: modifiersOf(event), repeat: event.repeat,
    });
  };
  screen.addEventListener('keydown', (event) => key('down', event));
  screen.addEventListener('keyup', (event) => key('up', event));
  document.addEventListener('paste', (event) => {
    const text = event.clipboardData?.getData('text/plain');
    if (!view.control || document.activeElement !== screen || !text) return;
    event.preventDefault();
    // The server accepts messages of 16 KiB. Split by characters, because half of a surrogate pair is no text.
    const characters = Array.from(text);
    for (let start = 0; start < characters.length; start += 2000) send({ type: 'text', text: characters.slice(start, start + 2000).join('') });
  });
};
