// Saves and restores localStorage, IndexedDB and the private file system of an origin, in Playwright's format. Runs in an
// empty document of the origin. Evaluates to { collect, restore }.
(() => {
  const TYPED_ARRAYS = {
    i8: Int8Array, ui8: Uint8Array, ui8c: Uint8ClampedArray, i16: Int16Array, ui16: Uint16Array, i32: Int32Array, ui32: Uint32Array,
    f32: Float32Array, f64: Float64Array, bi64: BigInt64Array, bui64: BigUint64Array,
  };
  const SPECIAL_NUMBERS = { NaN: NaN, Infinity: Infinity, '-Infinity': -Infinity, '-0': -0 };

  const toBase64 = (bytes) => {
    let binary = '';
    for (let start = 0; start < bytes.length; start += 0x8000) binary += String.fromCharCode(...bytes.subarray(start, start + 0x8000));
    return btoa(binary);
  };
  const fromBase64 = (text) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  const bytesOf = (view) => new Uint8Array(view.buffer, view.byteOffset, view.byteLength);

  const isPlainObject = (value) => [Object.prototype, null].includes(Object.getPrototypeOf(value));

  // Whether JSON can hold the value as it is.
  const isTrivial = (value, seen = new Set()) => {
    if (value === null || typeof value === 'string' || typeof value === 'boolean') return true;
    if (typeof value === 'number') return Number.isFinite(value) && !Object.is(value, -0);
    if (typeof value !== 'object' || seen.has(value)) return false;
    seen.add(value);
    if (Array.isArray(value)) return Object.keys(value).length === value.length && value.every((item) => isTrivial(item, seen));
    return isPlainObject(value) && Object.values(value).every((item) => isTrivial(item, seen));
  };

  // Objects are numbered, so that one that occurs twice is the same object again when it is decoded.
  const encoder = () => {
    const numbers = new Map();
    const numbered = (value, content) => {
      const id = numbers.size + 1;
      numbers.set(value, id);
      return { ...content(), id };
    };
    const encode = (value) => {
      switch (typeof value) {
        case 'string':
        case 'boolean':
          return value;
        case 'bigint':
          return { bi: String(value) };
        case 'number': {
          const special = Object.keys(SPECIAL_NUMBERS).find((name) => Object.is(SPECIAL_NUMBERS[name], value));
          return special ? { v: special } : value;
        }
        case 'object':
          return value === null ? { v: 'null' } : encodeObject(value);
        default:
          return { v: 'undefined' };
      }
    };
    const encodeObject = (value) => {
      if (numbers.has(value)) return { ref: numbers.get(value) };
      if (value instanceof Date) return { d: value.toJSON() };
      if (value instanceof RegExp) return { r: { p: value.source, f: value.flags } };
      if (value instanceof Error) return { e: { n: value.name, m: value.message, s: value.stack ?? '' } };
      const kind = Object.keys(TYPED_ARRAYS).find((name) => value.constructor === TYPED_ARRAYS[name]);
      if (kind) return { ta: { b: toBase64(bytesOf(value)), k: kind } };
      if (value instanceof ArrayBuffer) return { ab: { b: toBase64(new Uint8Array(value)) } };
      if (value instanceof Map) return numbered(value, () => ({ m: [...value].map(([key, item]) => ({ k: encode(key), v: encode(item) })) }));
      if (value instanceof Set) return numbered(value, () => ({ s: [...value].map(encode) }));
      if (Array.isArray(value)) return numbered(value, () => ({ a: Array.from(value, encode) }));
      return numbered(value, () => ({ o: Object.entries(value).map(([key, item]) => ({ k: key, v: encode(item) })) }));
    };
    return encode;
  };

  const decoder = () => {
    const objects = new Map();
    const numbered = (id, object) => {
      objects.set(id, object);
      return object;
    };
    const decode = (code) => {
      if (typeof code !== 'object' || code === null) return code;
      if ('ref' in code) return objects.get(code.ref);
      if ('v' in code) return code.v === 'null' ? null : SPECIAL_NUMBERS[code.v];
      if ('d' in code) return new Date(code.d);
      if ('u' in code) return code.u;
      if ('bi' in code) return BigInt(code.bi);
      if ('r' in code) return new RegExp(code.r.p, code.r.f);
      if ('e' in code) return Object.assign(new Error(code.e.m), { name: code.e.n, stack: code.e.s });
      if ('ta' in code) return new TYPED_ARRAYS[code.ta.k](fromBase64(code.ta.b).buffer);
      if ('ab' in code) return fromBase64(code.ab.b).buffer;
      if ('m' in code) return code.m.reduce((map, { k, v }) => map.set(decode(k), decode(v)), numbered(code.id, new Map()));
      if ('s' in code) return code.s.reduce((set, item) => set.add(decode(item)), numbered(code.id, new Set()));
      if ('a' in code) return code.a.reduce((list, item) => (list.push(decode(item)), list), numbered(code.id, []));
      const object = numbered(code.id, {});
      for (const { k, v } of code.o ?? []) Object.defineProperty(object, k, { value: decode(v), writable: true, enumerable: true, configurable: true });
      return object;
    };
    return decode;
  };

  const field = (name, value) => (isTrivial(value) ? { [name]: value } : { [`${name}Encoded`]: encoder()(value) });
  const fieldValue = (record, name) => (name in record ? record[name] : decoder()(record[`${name}Encoded`]));
  const keyPathFields = (keyPath) => (Array.isArray(keyPath) ? { keyPathArray: keyPath } : keyPath === null ? {} : { keyPath });
  const keyPathOf = ({ keyPath, keyPathArray }) => keyPathArray ?? keyPath ?? null;

  const done = (request) =>
    new Promise((resolve, reject) => {
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(request.error);
      request.onblocked = () => reject(new Error(`the database is in use`));
    });

  const collectStore = async (store) => {
    const keys = await done(store.getAllKeys());
    const values = await Promise.all(keys.map((key) => done(store.get(key))));
    const records = keys.map((key, index) => ({ ...(store.keyPath === null && field('key', key)), ...field('value', values[index]) }));
    const indexes = [...store.indexNames].map((name) => {
      const { keyPath, multiEntry, unique } = store.index(name);
      return { name, ...keyPathFields(keyPath), multiEntry, unique };
    });
    return { name: store.name, autoIncrement: store.autoIncrement, ...keyPathFields(store.keyPath), records, indexes };
  };
  const collectDatabase = async ({ name, version }) => {
    const database = await done(indexedDB.open(name));
    const names = [...database.objectStoreNames];
    const transaction = names.length > 0 && database.transaction(names, 'readonly');
    const stores = await Promise.all(names.map((store) => collectStore(transaction.objectStore(store))));
    database.close();
    return { name, version, stores };
  };
  const restoreDatabase = async ({ name, version, stores }) => {
    const opening = indexedDB.open(name, version);
    opening.onupgradeneeded = () => {
      for (const store of stores) {
        const created = opening.result.createObjectStore(store.name, { autoIncrement: store.autoIncrement, keyPath: keyPathOf(store) });
        for (const index of store.indexes) created.createIndex(index.name, keyPathOf(index), { unique: index.unique, multiEntry: index.multiEntry });
      }
    };
    const database = await done(opening);
    const names = stores.map((store) => store.name);
    const transaction = names.length > 0 && database.transaction(names, 'readwrite');
    for (const store of stores) {
      const target = transaction.objectStore(store.name);
      for (const record of store.records) {
        const value = fieldValue(record, 'value');
        if (target.keyPath === null) target.put(value, fieldValue(record, 'key'));
        else target.put(value);
      }
    }
    if (transaction)
      await new Promise((resolve, reject) => {
        transaction.oncomplete = resolve;
        transaction.onabort = transaction.onerror = () => reject(transaction.error ?? new Error('the transaction was aborted'));
      });
    database.close();
  };

  // The private file system exists only in secure contexts.
  const fileRoot = () => navigator.storage?.getDirectory?.();
  const collectFiles = async (directory, prefix = '') => {
    const entries = [];
    for await (const [name, handle] of directory.entries()) {
      const path = prefix + name;
      if (handle.kind === 'directory') entries.push({ path, type: 'directory' }, ...(await collectFiles(handle, `${path}/`)));
      else entries.push({ path, type: 'file', base64: toBase64(new Uint8Array(await (await handle.getFile()).arrayBuffer())) });
    }
    return entries;
  };
  const restoreFile = async (root, { path, type, base64 }) => {
    const parts = path.split('/');
    const name = parts.pop();
    let directory = root;
    for (const part of parts) directory = await directory.getDirectoryHandle(part, { create: true });
    if (type === 'directory') return void (await directory.getDirectoryHandle(name, { create: true }));
    const writable = await (await directory.getFileHandle(name, { create: true })).createWritable();
    await writable.write(fromBase64(base64));
    await writable.close();
  };

  const collect = async () => {
    const localItems = Object.keys(localStorage).map((name) => ({ name, value: localStorage.getItem(name) }));
    const databases = await Promise.all((await indexedDB.databases()).map(collectDatabase));
    const root = await fileRoot();
    const files = root ? await collectFiles(root) : [];
    return { localStorage: localItems, ...(databases.length && { indexedDB: databases }), ...(files.length && { opfs: files }) };
  };
  const restore = async (state) => {
    for (const { name, value } of state.localStorage) localStorage.setItem(name, value);
    for (const database of state.indexedDB ?? []) await restoreDatabase(database);
    const files = state.opfs ?? [];
    const root = files.length > 0 && (await fileRoot());
    if (files.length > 0 && !root) throw new Error('files can be restored only for https:// and localhost');
    for (const file of files) await restoreFile(root, file);
  };
  return { collect, restore };
})()
