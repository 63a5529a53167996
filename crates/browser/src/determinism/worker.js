// Runs in every worker before its script. Workers have no virtual clock of their own: their date stands still, their timers
// wait and their messages are held back until the farm moves their clock with `__webgymAdvance`.
// The worker has no location before its script is loaded: Chromium ends the process if it is read.
const realmName = () => `${URL_OF_WORKER} ${NUMBER}`;

RANDOM

let clock = NOW;
const origin = clock;
const NativeDate = Date;
const construct = function (...args) {
  if (!new.target) return new NativeDate(clock).toString();
  return Reflect.construct(NativeDate, args.length ? args : [clock], new.target === construct ? NativeDate : new.target);
};
construct.prototype = NativeDate.prototype;
for (const name of ['parse', 'UTC']) Object.defineProperty(construct, name, Object.getOwnPropertyDescriptor(NativeDate, name));
Object.defineProperties(construct, { name: { value: 'Date' }, length: { value: 7 }, now: Object.getOwnPropertyDescriptor(NativeDate, 'now') });
replace(construct, 'now', () => clock);
sources.set(construct, nativeToString.call(NativeDate));
NativeDate.prototype.constructor = construct;
Object.defineProperty(globalThis, 'Date', { value: construct, configurable: true, writable: true });

let lastNow = 0;
replace(Performance.prototype, 'now', () => (lastNow = Math.max(clock - origin, lastNow + 0.005)));
Object.defineProperty(Performance.prototype, 'timeOrigin', { get: () => origin, configurable: true, enumerable: true });

const timers = new Map();
let lastTimer = 0;
const addTimer = (callback, delay, args, repeats) => {
  lastTimer += 1;
  const wait = Math.max(Number(delay) || 0, repeats ? 1 : 0);
  timers.set(lastTimer, { due: clock + wait, wait, repeats, run: typeof callback === 'function' ? () => callback(...args) : () => (0, eval)(String(callback)) });
  return lastTimer;
};
// Chromium defines the timers later, when the script is loaded; what is defined here then stays.
const define = (name, length, replacement) => {
  Object.defineProperty(globalThis, name, { value: nativeToString, configurable: true, enumerable: true, writable: true });
  replace(globalThis, name, replacement);
  Object.defineProperty(globalThis[name], 'length', { value: length, configurable: true });
  sources.set(globalThis[name], `function ${name}() { [native code] }`);
};
define('setTimeout', 1, (callback, delay, ...args) => addTimer(callback, delay, args, false));
define('setInterval', 1, (callback, delay, ...args) => addTimer(callback, delay, args, true));
define('clearTimeout', 0, (id) => timers.delete(id));
define('clearInterval', 0, (id) => timers.delete(id));
replace(globalThis, 'requestAnimationFrame', (callback) => addTimer(() => callback(clock - origin), 16, [], false));
replace(globalThis, 'cancelAnimationFrame', (id) => timers.delete(id));

// Messages of a dedicated worker. Those that transfer something cannot wait, because it is lost for the sender at once.
const held = [];
const nativePost = globalThis.postMessage;
if (typeof nativePost === 'function')
  replace(globalThis, 'postMessage', (message, options) => {
    const transfer = Array.isArray(options) ? options : options?.transfer;
    if (transfer?.length) return nativePost.call(globalThis, message, options);
    held.push(structuredClone(message));
  });

// Moves the clock, runs the timers that are due in their order, and sends the messages.
const MAX_TIMERS = 10000;
const advance = (target) => {
  for (let count = 0; count < MAX_TIMERS; count += 1) {
    const [next] = [...timers].sort(([a, first], [b, second]) => first.due - second.due || a - b);
    if (!next || next[1].due > target) break;
    const [id, timer] = next;
    clock = Math.max(clock, timer.due);
    if (timer.repeats) timer.due = clock + timer.wait;
    else timers.delete(id);
    try {
      timer.run();
    } catch (error) {
      reportError(error);
    }
  }
  clock = Math.max(clock, target);
  for (const message of held.splice(0)) nativePost.call(globalThis, message);
};
Object.defineProperty(globalThis, '__webgymAdvance', { value: advance });
