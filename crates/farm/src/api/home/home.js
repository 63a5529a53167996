// Asks for /info every two seconds, with the key that was typed in; it stays in this tab only.
const part = (id) => document.getElementById(id);
const element = (tag, text, ...children) => {
  const made = document.createElement(tag);
  made.textContent = text;
  made.append(...children);
  return made;
};
let key = sessionStorage.getItem('webgym-farm-key') ?? 'default_key';

const sums = (nodes) => {
  const total = (of) => nodes.reduce((sum, node) => sum + of(node), 0);
  return { Nodes: nodes.length, Slots: total((node) => node.capacity), 'In use': total((node) => node.instances.length), Free: total((node) => node.available) };
};

const row = (node) => {
  const state = !node.healthy ? 'does not answer' : node.draining ? 'draining' : node.dead_because ?? node.held_back ?? 'healthy';
  const cells = [node.capacity, node.instances.length, node.available, node.starting, node.dead, node.version ?? '–', state];
  const name = element('th', node.url);
  name.scope = 'row';
  return element('tr', '', name, ...cells.map((cell) => element('td', String(cell))));
};

const show = ({ nodes }) => {
  part('sums').replaceChildren(...Object.entries(sums(nodes)).map(([name, value]) => element('div', '', element('dt', name), element('dd', String(value)))));
  part('nodes').replaceChildren(...nodes.map(row));
  document.querySelector('table').hidden = false;
};

const look = async () => {
  try {
    const answer = await fetch('info', { headers: { 'x-api-key': key } });
    part('enter').hidden = answer.ok;
    part('state').textContent = answer.ok ? 'live' : 'a key is needed';
    if (!answer.ok) return;
    show(await answer.json());
  } catch {
    part('state').textContent = 'the farm does not answer';
  }
  setTimeout(look, 2000);
};

part('enter').addEventListener('submit', (event) => {
  event.preventDefault();
  key = part('key').value;
  sessionStorage.setItem('webgym-farm-key', key);
  look();
});
look();
