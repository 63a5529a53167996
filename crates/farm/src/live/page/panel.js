// The panel beside the screencast: state of the lease and console messages.
export const byId = (id) => document.getElementById(id);

const MAX_LINES = 500;
const MAX_URL = 100;

const duration = (seconds) => {
  const [minutes, hours] = [Math.floor(seconds / 60), Math.floor(seconds / 3600)];
  if (hours > 0) return `${hours} h ${minutes % 60} min`;
  return minutes > 0 ? `${minutes} min ${seconds % 60} s` : `${seconds} s`;
};

export const showLease = (lease) => {
  byId('age').textContent = duration(lease.age_secs);
  const isHeld = lease.cdp_connections > 0 || lease.controllers > 0 || lease.acting;
  const left = Math.max(0, lease.lifetime_secs - lease.unused_secs);
  byId('expires').textContent = isHeld ? 'not while it is in use' : `in ${duration(left)} if unused`;
  const clients = lease.cdp_connections > 0 ? `, ${lease.cdp_connections} CDP connection${lease.cdp_connections === 1 ? '' : 's'}` : '';
  byId('acting').textContent = (lease.acting ? 'now, by a command' : `${duration(lease.unused_secs)} ago`) + clients;
  byId('viewers').textContent = `${lease.viewers}${lease.controllers > 0 ? `, ${lease.controllers} with control` : ''}`;
};

const line = (className, text, source) => {
  const item = document.createElement('li');
  item.className = className;
  const message = document.createElement('span');
  message.className = 'untrusted';
  message.textContent = text;
  item.append(message);
  if (source) {
    const origin = document.createElement('span');
    origin.className = 'source untrusted';
    origin.textContent = source;
    item.append(origin);
  }
  return item;
};

const shortened = (url) => (url.length > MAX_URL ? `${url.slice(0, MAX_URL)}…` : url);

export const addConsole = ({ entries, missed }) => {
  const list = byId('console');
  const isAtEnd = list.scrollTop + list.clientHeight >= list.scrollHeight - 4;
  if (missed > 0) list.append(line('missed', `${missed} messages are not shown`));
  for (const { level, text, url, line: number } of entries) {
    list.append(line(level, text, url ? `${shortened(url)}${number > 0 ? `:${number}` : ''}` : ''));
  }
  while (list.childElementCount > MAX_LINES) list.firstElementChild.remove();
  byId('console-empty').hidden = list.childElementCount > 0;
  if (isAtEnd) list.scrollTop = list.scrollHeight;
};

export const clearConsole = () => {
  byId('console').replaceChildren();
  byId('console-empty').hidden = false;
};

/** Counts the frames of the last second. */
export class FrameRate {
  #frames = 0;
  count() { this.#frames += 1; }
  perSecond() {
    const frames = this.#frames;
    this.#frames = 0;
    return frames;
  }
}
