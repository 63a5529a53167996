"""Serves the unmodified MiniWoB pages, and /drive/TASK, which shows one of them in a frame next to a "Read" button."""

import json
import threading
import urllib.parse
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

DRIVE_PAGE = Path(__file__).with_name("drive.html")
EPISODE_LIMIT_MS = 60_000  # MiniWoB's own limits are 10 to 30 s, which a loaded machine may exceed


class Handler(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if not self.path.startswith("/drive/"):
            super().do_GET()
            return
        body = DRIVE_PAGE.read_bytes()
        self.send_response(200)
        self.send_header("content-type", "text/html; charset=utf-8")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_) -> None:
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, *_) -> None:
        """Ignores clients that disconnect."""


class Site:
    """The pages on a free loopback port, until this process ends."""

    def __init__(self, html: Path):
        server = Server(("127.0.0.1", 0), partial(Handler, directory=str(html)))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{server.server_port}"

    def episode_url(self, task: str, seed: int, selectors: list[str]) -> str:
        query = {"seed": seed, "limit_ms": EPISODE_LIMIT_MS, "selectors": json.dumps(selectors)}
        return f"{self.url}/drive/{task}?{urllib.parse.urlencode(query)}"
