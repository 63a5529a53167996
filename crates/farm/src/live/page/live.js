// Connects to the WebSocket of the live view, draws its frames, and sends input if the link allows it. Everything that the page
// of the session chose (address, title, console) is shown as text only.
import { attachInput } from './input.js';
import { addConsole, byId, clearConsole, FrameRate, showLease } from './panel.js';

const screen = byId('screen');
const drawing = screen.getContext('2d', { alpha: false });
const rate = new FrameRate();
const view = { socket: null, control: false, ended: false, retries: 0, viewport: { width: 1280, height: 768 } };
const MAX_RETRY_MS = 5000;

const setState = (text, kind) => {
  byId('state').textContent = text;
  byId('state').className = `badge ${kind}`;
};

let noticeTimer = 0;
const notify = (text, stays = false) => {
  byId('notice').textContent = text;
  byId('notice').hidden = text === '';
  clearTimeout(noticeTimer);
  if (text && !stays) noticeTimer = setTimeout(() => notify(''), 8000);
};

const send = (message) => {
  if (view.socket?.readyState === WebSocket.OPEN) view.socket.send(JSON.stringify(message));
};

// A visit, back or forward ends with a message.
const setBusy = (isBusy) => byId('bar').classList.toggle('busy', isBusy);
const command = (message) => {
  setBusy(true);
  send(message);
};

const end = (detail) => {
  setBusy(false);
  view.ended = true;
  screen.classList.add('ended');
  setState('ended', 'bad');
  setControl(false);
  notify(`This live view has ended: ${detail}.`, true);
};

// A frame is acknowledged after it was drawn, so that frames never queue and none are captured for a hidden tab.
const draw = async (blob) => {
  try {
    const image = await createImageBitmap(blob);
    if (screen.width !== image.width || screen.height !== image.height) {
      screen.width = image.width;
      screen.height = image.height;
    }
    drawing.drawImage(image, 0, 0);
    image.close();
    rate.count();
  } finally {
    requestAnimationFrame(() => send({ type: 'ack' }));
  }
};

const setControl = (control) => {
  view.control = control;
  for (const id of ['back', 'forward', 'reload']) byId(id).disabled = !control;
  byId('url').readOnly = !control;
  byId('go').hidden = byId('hint').hidden = !control;
  screen.classList.toggle('control', control);
  if (control) {
    screen.tabIndex = 0;
    screen.setAttribute('role', 'application');
    screen.setAttribute('aria-label', 'The page of the session. Mouse and keyboard act on it; Shift+Escape leaves it.');
  } else {
    screen.removeAttribute('tabindex');
    screen.setAttribute('role', 'img');
    screen.setAttribute('aria-label', 'Screencast of the session');
  }
};

const handlers = {
  hello: (message) => {
    view.viewport = message.viewport;
    byId('instance').textContent = message.instance_id;
    byId('mode').hidden = false;
    byId('mode').textContent = message.control ? 'you have control' : 'read only';
    byId('mode').className = `badge ${message.control ? 'warn' : ''}`;
    setControl(message.control);
    clearConsole();
  },
  page: ({ url, title }) => {
    byId('title').textContent = title;
    byId('title').title = title;
    // What a person is typing is not replaced.
    if (document.activeElement !== byId('url') || !view.control) byId('url').value = url;
    document.title = `${title || url} · webgym live`;
  },
  console: addConsole,
  lease: showLease,
  done: () => setBusy(false),
  error: ({ detail }) => {
    setBusy(false);
    notify(detail);
  },
};

// Finds out why the connection could not be opened: the browser does not tell.
const explain = async () => {
  const response = await fetch(location.pathname, { cache: 'no-store' }).catch(() => null);
  return response?.status === 404 ? 'its lease has ended' : null;
};

const retry = async () => {
  const reason = await explain();
  if (reason) return end(reason);
  setState('reconnecting', 'warn');
  view.retries += 1;
  setTimeout(connect, Math.min(MAX_RETRY_MS, 250 * 2 ** view.retries));
};

const connect = () => {
  const address = new URL(`${location.pathname}/socket`, location.href);
  address.protocol = address.protocol === 'https:' ? 'wss:' : 'ws:';
  const socket = new WebSocket(address);
  socket.binaryType = 'blob';
  view.socket = socket;
  socket.onopen = () => {
    view.retries = 0;
    setState('live', 'good');
  };
  socket.onmessage = ({ data }) => {
    if (typeof data !== 'string') return void draw(data);
    const message = JSON.parse(data);
    handlers[message.type]?.(message);
  };
  socket.onclose = ({ code, reason }) => {
    if (view.ended) return;
    if ([1001, 1008, 1009, 1013].includes(code) && reason) return end(reason);
    retry();
  };
};

byId('bar').addEventListener('submit', (event) => {
  event.preventDefault();
  const text = byId('url').value.trim();
  if (!view.control || !text) return;
  command({ type: 'navigate', url: /^[a-z][a-z0-9+.-]*:/i.test(text) && !/^[^/]+:\d+(\/|$)/.test(text) ? text : `https://${text}` });
  screen.focus();
});
for (const id of ['back', 'forward']) byId(id).addEventListener('click', () => command({ type: id }));
byId('reload').addEventListener('click', () => send({ type: 'reload' }));
byId('clear').addEventListener('click', clearConsole);
setInterval(() => { byId('rate').textContent = `${rate.perSecond()} per second`; }, 1000);
attachInput(screen, view, send);
connect();
