"""A site with a login that needs a cookie, localStorage and IndexedDB, on a free loopback port."""

import http.server
import threading

LOGIN = """<!doctype html><title>Log in</title>
<label>Name <input id=name></label> <button id=enter>Log in</button>
<script>
const field = document.getElementById('name');
enter.onclick = async () => {
  await fetch('/session', { method: 'POST', body: field.value });
  localStorage.setItem('name', field.value);
  const opening = indexedDB.open('profile', 2);
  opening.onupgradeneeded = () => opening.result.createObjectStore('keys', { keyPath: 'id' });
  opening.onsuccess = () => {
    const transaction = opening.result.transaction('keys', 'readwrite');
    transaction.objectStore('keys').put({ id: 'own', issued: new Date(1e12), bytes: new Uint8Array([1, 2, 3]) });
    transaction.oncomplete = () => { opening.result.close(); location.href = '/'; };
  };
};
</script>"""

HOME = """<!doctype html><title>Home</title><p id=state>loading</p>
<script>
(async () => {
  const cookie = await (await fetch('/session')).text();
  const opening = indexedDB.open('profile');
  const database = await new Promise((resolve) => (opening.onsuccess = () => resolve(opening.result)));
  let key;
  if (database.objectStoreNames.contains('keys'))
    key = await new Promise((resolve) => (database.transaction('keys').objectStore('keys').get('own').onsuccess = (event) => resolve(event.target.result)));
  document.getElementById('state').textContent =
    `cookie ${cookie}; storage ${localStorage.getItem('name')}; database ${key?.issued?.getTime()} ${key?.bytes?.length}`;
})();
</script>"""


class _Handler(http.server.BaseHTTPRequestHandler):
    def _answer(self, body: str, headers: dict | None = None) -> None:
        data = body.encode()
        self.send_response(200)
        for name, value in {"content-type": "text/html; charset=utf-8", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self) -> None:
        if self.path == "/login":
            self._answer(LOGIN)
        elif self.path == "/session":
            cookies = dict(part.strip().split("=", 1) for part in self.headers.get("cookie", "").split(";") if "=" in part)
            self._answer(cookies.get("sid", "nobody"))
        else:
            self._answer(HOME)

    def do_POST(self) -> None:
        name = self.rfile.read(int(self.headers.get("content-length", 0))).decode()
        self._answer("", {"set-cookie": f"sid={name}; HttpOnly; SameSite=Lax; Max-Age=3600"})

    def log_message(self, *_: object) -> None:
        pass


def expected_state(name: str) -> str:
    """What the home page shows to someone who is logged in."""
    return f"cookie {name}; storage {name}; database 1000000000000 3"


def start() -> str:
    """Starts the site. Returns its URL."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"
