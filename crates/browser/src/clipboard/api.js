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
  const send = (message) =>
    new Promise((resolve, reject) => {
      lastRequest += 1;
      waiting.set(lastRequest, ({ error, items }) => (error ? reject(new DOMException(error, 'DataError')) : resolve(items)));
      dispatch(new CustomEvent(API_REQUEST, { detail: { request: lastRequest, ...message } }));
    });

  // Chromium asks the user before a page may read the clipboard. Here a recent click or key of the agent counts as consent.
  const requireActivation = (isAllowed, operation) => {
    if (!isAllowed()) throw new DOMException(`${operation} permission denied: it needs a user action first.`, 'NotAllowedError');
  };
  const blobsOf = async (items) => {
    const blobs = [];
    for (const item of items) for (const type of item.types) blobs.push({ type, blob: await item.getType(type) });
    return blobs;
  };

  const replacements = {
    async writeText(text) {
      requireActivation(hasBeenActive, 'Write');
      await send({ write: [{ type: 'text/plain', blob: new Blob([text], { type: 'text/plain' }) }] });
    },
    async write(items) {
      requireActivation(hasBeenActive, 'Write');
      await send({ write: await blobsOf([...items]) });
    },
    async readText() {
      requireActivation(isActive, 'Read');
      const text = (await send({})).find(({ type }) => type === 'text/plain');
      return text ? text.blob.text() : '';
    },
    async read() {
      requireActivation(isActive, 'Read');
      const items = await send({});
      if (items.length === 0) return [];
      const byType = {};
      for (const { type, blob } of items) byType[type] = blob;
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
