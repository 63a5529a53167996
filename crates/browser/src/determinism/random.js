// Seeded randomness of a realm, for pages and workers. `SEED` and `realmName` are defined by the script around this part.

// FNV-1a of the name of the realm, mixed with the seed of the session. Computed at the first use: a frame may keep its
// global object, and with it this script, when its empty first document is replaced.
let state;
const initialState = () => [...realmName()].reduce((hash, character) => Math.imul(hash ^ character.codePointAt(0), 0x01000193), SEED ^ 0x811c9dc5);
// Mulberry32: small, fast and good enough for pages; nothing here is a secret.
const random32 = () => {
  state = ((state ?? initialState()) + 0x6d2b79f5) | 0;
  let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
  mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
  return (mixed ^ (mixed >>> 14)) >>> 0;
};

// Functions that replace native ones are shown as native: their source is asked for through `toString`.
const sources = new WeakMap();
const nativeToString = Function.prototype.toString;
const replace = (owner, name, replacement) => {
  const native = owner?.[name];
  if (typeof native !== 'function') return;
  const { [name]: shown } = { [name](...args) { return replacement.apply(this, args); } };
  Object.defineProperty(shown, 'length', { value: native.length, configurable: true });
  sources.set(shown, nativeToString.call(native));
  const descriptor = Object.getOwnPropertyDescriptor(owner, name);
  Object.defineProperty(owner, name, { configurable: true, enumerable: true, writable: true, ...descriptor, value: shown });
};
replace(Function.prototype, 'toString', function () {
  return sources.get(this) ?? nativeToString.call(this);
});

const fillRandomly = (array) => {
  const bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
  for (let index = 0; index < bytes.length; index += 4) {
    const word = random32();
    for (let part = 0; part < 4 && index + part < bytes.length; part += 1) bytes[index + part] = word >>> (8 * part);
  }
  return array;
};
replace(Math, 'random', () => (random32() * 2 ** 21 + (random32() >>> 11)) / 2 ** 53);
if (globalThis.crypto) {
  const prototype = Object.getPrototypeOf(crypto);
  const { getRandomValues } = prototype;
  replace(prototype, 'getRandomValues', function (array) {
    // The native function checks the type and the length of the argument.
    return fillRandomly(getRandomValues.call(this, array));
  });
  replace(prototype, 'randomUUID', () => {
    const bytes = fillRandomly(new Uint8Array(16));
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('');
    return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
  });
}
