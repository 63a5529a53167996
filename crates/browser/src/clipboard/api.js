// navigator.clipboard for the scripts of a page: with the clipboard of the tenant instead of the browser's, which all
// tenants of a process share. Runs before the scripts of the page and passes requests to frame.js, which they cannot see.
(() => {
  if (!globalThis.Clipboard) return;
  const API_REQUEST = '%SECRET%-request';
  const API_REPLY = '%SECRET%-reply';

  // The page may replace these later.
  const { CustomEvent, ClipboardItem, DOMException, Blob, Map, Promise } = globalThis;
  const dispatch = EventTarget.prototype.dispatchEvent.bind(globalThis);
  const activation = navigator.userActivation;
  const stateOf = (name) => Object.getOwnPropertyDescriptor(UserActivation.prototype, name).get.bind(activation);
  const isActive = stateOf('isActive');
  const hasBeenActive = stateOf('hasBeenActive');

  const waiting = new Map();
  let lastRequest = 0;
  addEventListener(API_REPLY, ({ detail }) => {
    waiting.get(detail.request)?.(detail);
    waiting.delete(detail.request);
  });
  // Sends what `prepare` returns, and returns the items of the reply. The operation is announced before, so that it counts as
  // running from its call on. Without `then`, which the page may replace, and which would be given the means to send.
  const send = async (prepare) => {
    lastRequest += 1;
    const request = lastRequest;
    const post = (message) => dispatch(new CustomEvent(API_REQUEST, { detail: { request, ...message } }));
    const reply = new Promise((resolve, reject) => {
      waiting.set(request, ({ error, items }) => (error ? reject(new DOMException(error, 'DataError')) : resolve(items)));
    });
    post({ isPreparing: true });
    try {
      post(await prepare());
    } catch (error) {
      waiting.delete(request);
      post({ isAbandoned: true });
      throw error;
    }
    return await reply;
  };

  // Chromium asks the user before a page may read the clipboard. Here a recent click or key of the agent counts as consent.
  const requireActivation = (isAllowed, operation) => {
    if (!isAllowed()) throw new DOMException(`${operation} permission denied: it needs a user action first.`, 'NotAllowedError');
  };
  const blobsOf = async (items) => {
    const blobs = [];
    for (const item of items) for (const type of item.types) blobs.push({ type, blob: await item.getType(type) });
    return blobs;
  };
  const readItems = () => send(async () => ({}));

  const replacements = {
    async writeText(text) {
      requireActivation(hasBeenActive, 'Write');
      await send(async () => ({ write: [{ type: 'text/plain', text: String(text) }] }));
    },
    async write(items) {
      requireActivation(hasBeenActive, 'Write');
      await send(async () => ({ write: await blobsOf([...items]) }));
    },
    async readText() {
      requireActivation(isActive, 'Read');
      return (await readItems()).find(({ type }) => type === 'text/plain')?.text ?? '';
    },
    async read() {
      requireActivation(isActive, 'Read');
      const items = await readItems();
      if (items.length === 0) return [];
      const byType = {};
      for (const { type, text, blob } of items) byType[type] = blob ?? new Blob([text], { type });
      return [new ClipboardItem(byType)];
    },
  };
  for (const [name, value] of Object.entries(replacements))
    Object.defineProperty(Clipboard.prototype, name, { value, writable: true, enumerable: true, configurable: true });

  const query = Permissions.prototype.query;
  const STATES = { 'clipboard-write': 'granted', 'clipboard-read': 'prompt' };
  Permissions.prototype.query = {
    async query(descriptor) {
      const status = await Reflect.apply(query, this, [descriptor]);
      const state = STATES[descriptor?.name];
      return state ? Object.defineProperty(status, 'state', { value: state }) : status;
    },
  }.query;
})();
