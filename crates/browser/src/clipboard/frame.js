// The clipboard of the tenant, as the frames of its pages see it. Chromium has one clipboard for all tenants of a process.
// So this script, in an isolated world of every frame and before any script of the page, cancels each copy, cut and paste
// of the browser and repeats it with the clipboard that the farm keeps for the tenant.
(() => {
  if (globalThis.__webgymClipboard) return;

  const API_REQUEST = '%SECRET%-request';
  const API_REPLY = '%SECRET%-reply';
  const MAX_CHARACTERS = %MAX_CHARACTERS%;

  // Messages to the farm. The binding arrives a moment after the frame; until then they wait.
  const unsent = [];
  const flush = () => {
    const send = globalThis.__webgymSend;
    if (!send) return setTimeout(flush, 5);
    while (unsent.length > 0) send(unsent.shift());
  };
  // The farm reads no text with half a character, which a page may copy.
  const wellFormed = (_, value) => (typeof value === 'string' ? value.toWellFormed() : value);
  const post = (message) => {
    const json = JSON.stringify(message, wellFormed);
    if (json.length > MAX_CHARACTERS) return false;
    unsent.push(json);
    flush();
    return true;
  };

  // Operations that have begun and not ended, and those of navigator.clipboard whose data the page prepares. Reading a blob
  // takes a round trip to the browser, so that the page may look quiet meanwhile.
  let running = 0;
  const preparing = new Set();
  const track = (operation) => {
    running += 1;
    return operation.finally(() => {
      running -= 1;
    });
  };

  // Calls that wait for the content of the clipboard, by number.
  const waiting = new Map();
  let lastRequest = 0;
  const readClipboard = (operation) =>
    new Promise((resolve) => {
      lastRequest += 1;
      waiting.set(lastRequest, resolve);
      post({ [operation]: lastRequest });
    });
  // Called by the farm.
  const deliver = (request, entries) => {
    waiting.get(request)?.(entries);
    waiting.delete(request);
  };

  // An entry is the content in one type: { type, text } or { type, base64 }.
  const isText = (type) => type.startsWith('text/');
  const fromBase64 = (base64) => Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  const toBase64 = async (blob) => {
    const bytes = new Uint8Array(await blob.arrayBuffer());
    let binary = '';
    for (let start = 0; start < bytes.length; start += 0x8000) binary += String.fromCharCode(...bytes.subarray(start, start + 0x8000));
    return btoa(binary);
  };
  const blobToEntry = async ({ type, blob }) => (isText(type) ? { type, text: await blob.text() } : { type, base64: await toBase64(blob) });
  // An item is what is exchanged with api.js: { type, text } or { type, blob }.
  const itemToEntry = async (item) => (item.text === undefined ? blobToEntry(item) : item);
  const entryToItem = (entry) => (entry.text === undefined ? { type: entry.type, blob: new Blob([fromBase64(entry.base64)], { type: entry.type }) } : entry);

  const focusedElement = () => {
    let element = document.activeElement ?? document.body;
    while (element?.shadowRoot?.activeElement) element = element.shadowRoot.activeElement;
    return element;
  };
  const isTextField = (element) => element?.localName === 'textarea' || (element?.localName === 'input' && typeof element.selectionStart === 'number');

  // What a copy takes if the page does not provide the data itself.
  const selectedEntries = () => {
    const element = focusedElement();
    if (isTextField(element)) {
      if (element.type === 'password') return [];
      const text = element.value.slice(element.selectionStart, element.selectionEnd);
      return text ? [{ type: 'text/plain', text }] : [];
    }
    const selection = getSelection();
    if (!selection?.rangeCount || selection.isCollapsed) return [];
    const container = document.createElement('div');
    for (let index = 0; index < selection.rangeCount; index += 1) container.append(selection.getRangeAt(index).cloneContents());
    return [{ type: 'text/plain', text: selection.toString() }, { type: 'text/html', text: container.innerHTML }];
  };

  const entriesOf = async (data) => {
    const entries = [...data.types].filter((type) => type !== 'Files').map((type) => ({ type, text: data.getData(type) }));
    const files = [...data.files].map((file) => blobToEntry({ type: file.type, blob: file }));
    return [...entries, ...(await Promise.all(files))];
  };
  const toDataTransfer = (entries) => {
    const data = new DataTransfer();
    for (const { type, text, base64 } of entries) {
      if (text !== undefined) data.setData(type, text);
      else data.items.add(new File([fromBase64(base64)], `image.${type.split('/')[1]}`, { type }));
    }
    return data;
  };

  // Repeats an event of the browser for the handlers of the page, with data of our own. Returns whether they handled it.
  const repeatEvent = (type, target, clipboardData) => {
    const event = new ClipboardEvent(type, { clipboardData, bubbles: true, cancelable: true, composed: true });
    return !target.dispatchEvent(event);
  };

  const copy = (type, target) => {
    const data = new DataTransfer();
    if (repeatEvent(type, target, data)) {
      track(entriesOf(data).then((entries) => entries.length > 0 && post({ write: entries })));
      return;
    }
    const entries = selectedEntries();
    if (entries.length > 0 && post({ write: entries }) && type === 'cut') document.execCommand('delete');
  };

  // Removes scripts and event handlers, as Chromium does with pasted HTML.
  const sanitize = (html) => {
    const container = document.implementation.createHTMLDocument('').body;
    container.setHTML(html);
    return container.innerHTML;
  };

  const paste = (target, entries) => {
    if (entries.length === 0 || repeatEvent('paste', target, toDataTransfer(entries))) return;
    const element = focusedElement();
    const textOf = (type) => entries.find((entry) => entry.type === type)?.text;
    const html = textOf('text/html');
    const isRich = element?.isContentEditable && styleOf(element) !== 'read-write-plaintext-only';
    if (isRich && html !== undefined) document.execCommand('insertHTML', false, sanitize(html));
    else if (textOf('text/plain')) document.execCommand('insertText', false, textOf('text/plain'));
  };
  const styleOf = (element) => getComputedStyle(element).webkitUserModify;

  // Whether the next paste is one without formatting, by ctrl+shift+v.
  let isPlainPaste = false;
  const onKeyDown = ({ isTrusted, ctrlKey, shiftKey, code }) => {
    if (isTrusted) isPlainPaste = ctrlKey && shiftKey && code === 'KeyV';
  };
  addEventListener('keydown', onKeyDown, true);

  const onClipboardEvent = (event) => {
    if (!event.isTrusted) return;
    event.stopImmediatePropagation();
    event.preventDefault();
    const target = event.composedPath()[0] ?? document.body;
    if (event.type !== 'paste') return copy(event.type, target);
    const isKept = isPlainPaste ? ({ type }) => type === 'text/plain' : () => true;
    isPlainPaste = false;
    track(readClipboard('paste').then((entries) => paste(target, entries.filter(isKept))));
  };
  for (const type of ['copy', 'cut', 'paste']) addEventListener(type, onClipboardEvent, true);

  // The other half of navigator.clipboard, see api.js.
  const answerApi = async ({ request, write }) => {
    const reply = (result) => dispatchEvent(new CustomEvent(API_REPLY, { detail: { request, ...result } }));
    if (!write) return reply({ items: (await readClipboard('read')).map(entryToItem) });
    const entries = await Promise.all(write.map(itemToEntry));
    return reply(post({ write: entries }) ? {} : { error: 'The data is too large for the clipboard.' });
  };
  const onApiRequest = ({ detail }) => {
    if (detail.isPreparing) return preparing.add(detail.request);
    preparing.delete(detail.request);
    if (!detail.isAbandoned) track(answerApi(detail));
  };
  addEventListener(API_REQUEST, onApiRequest);

  globalThis.__webgymClipboard = { deliver, isWaiting: () => running > 0 || preparing.size > 0 };
})();
