// Polls /info every two seconds with the API key that was entered. The key is stored for this tab only.
const byId = (id) => document.getElementById(id);
const element = (tag, text, ...children) => {
  const node = document.createElement(tag);
  node.textContent = text;
  node.append(...children);
  return node;
};
let key = sessionStorage.getItem('webgym-farm-key') ?? 'default_key';

const totals = (nodes) => {
  const total = (count) => nodes.reduce((sum, node) => sum + count(node), 0);
  return { Nodes: nodes.length, Slots: total((node) => node.capacity), 'In use': total((node) => node.instances.length), Free: total((node) => node.available) };
};

const row = (node) => {
  const state = !node.healthy ? 'unreachable' : node.draining ? 'draining' : node.dead_because ?? node.held_back ?? 'healthy';
  const cells = [node.capacity, node.instances.length, node.available, node.starting, node.dead, node.version ?? '–', state];
  const name = element('th', node.url);
  name.scope = 'row';
  return element('tr', '', name, ...cells.map((cell) => element('td', String(cell))));
};

const show = ({ nodes }) => {
  byId('sums').replaceChildren(...Object.entries(totals(nodes)).map(([name, value]) => element('div', '', element('dt', name), element('dd', String(value)))));
  byId('nodes').replaceChildren(...nodes.map(row));
  document.querySelector('table').hidden = false;
};

const poll = async () => {
  try {
    const response = await fetch('info', { headers: { 'x-api-key': key } });
    byId('enter').hidden = response.ok;
    byId('state').textContent = response.ok ? 'live' : 'API key required';
    if (!response.ok) return;
    show(await response.json());
  } catch {
    byId('state').textContent = 'the farm cannot be reached';
  }
  setTimeout(poll, 2000);
};

byId('enter').addEventListener('submit', (event) => {
  event.preventDefault();
  key = byId('key').value;
  sessionStorage.setItem('webgym-farm-key', key);
  poll();
});
poll();
