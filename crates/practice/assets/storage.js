// Every kind of storage that a page can use: how to read and write it.
function database() {
  return new Promise((resolve, reject) => {
    const opening = indexedDB.open('course', 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore('values');
    opening.onsuccess = () => resolve(opening.result);
    opening.onerror = () => reject(opening.error);
  });
}

async function inStore(mode, act) {
  const store = (await database()).transaction('values', mode).objectStore('values');
  return new Promise((resolve, reject) => {
    const request = act(store);
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

const CACHED = '/course/api/cached';
const places = {
  cookie: {
    read: () => (document.cookie.match(/(?:^|; )course_script=([^;]*)/) || [])[1],
    write: (value) => { document.cookie = 'course_script=' + value + '; path=/course; max-age=86400'; },
  },
  local: { read: () => localStorage.getItem('course'), write: (value) => localStorage.setItem('course', value) },
  session: { read: () => sessionStorage.getItem('course'), write: (value) => sessionStorage.setItem('course', value) },
  indexeddb: {
    read: () => inStore('readonly', (store) => store.get('course')),
    write: (value) => inStore('readwrite', (store) => store.put(value, 'course')),
  },
  cache: {
    read: async () => { const found = await caches.match('/course/kept'); return found && found.text(); },
    write: async (value) => (await caches.open('course')).put('/course/kept', new Response(value)),
  },
  'http-cache': {
    // Read only what is cached already, because reading must not store anything.
    read: async () => {
      const found = await fetch(CACHED, { cache: 'only-if-cached', mode: 'same-origin' }).catch(() => null);
      return found && found.ok ? found.text() : null;
    },
    write: (value) => fetch(CACHED, { cache: 'reload', headers: { 'x-value': value } }),
  },
  history: { read: () => String(history.length), write: () => {} },
};

async function look() {
  for (const name in places) {
    const found = await Promise.resolve().then(places[name].read).catch((error) => 'error: ' + error.message);
    document.getElementById('seen-' + name).textContent = found || 'none';
  }
}

async function keep(value) {
  for (const name in places) {
    await Promise.resolve().then(() => places[name].write(value)).catch((error) => log(name + ': ' + error.message));
  }
  log('kept ' + value);
}

document.getElementById('keep').onclick = () => keep(document.getElementById('value').value);
look().then(async () => {
  const asked = new URLSearchParams(location.search).get('set');
  if (asked) await keep(asked);
  document.getElementById('result').textContent = 'yes';
});
