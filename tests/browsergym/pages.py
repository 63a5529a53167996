"""The web of BrowserGym's tests: a server of files, and a proxy that answers for the hosts that cannot be reached."""

import http.client
import threading
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

LOOPBACK = "127.0.0.1"


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, handler):
        super().__init__((LOOPBACK, 0), handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()
        self.url = f"http://{LOOPBACK}:{self.server_port}"

    def handle_error(self, *_) -> None:
        """Ignores clients that disconnect."""


class FileHandler(SimpleHTTPRequestHandler):
    def log_message(self, *_) -> None:
        pass


class FileServer(Server):
    """Serves a folder until this process ends."""

    def __init__(self, folder: Path):
        super().__init__(partial(FileHandler, directory=str(folder)))
        self._folder = folder.resolve()

    def url_of(self, path: Path) -> str:
        return f"{self.url}/{path.resolve().relative_to(self._folder)}"


class ProxyHandler(BaseHTTPRequestHandler):
    """Forwards requests to this machine; every other host has one empty page."""

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        if address.hostname == LOOPBACK:
            self.forward(address.netloc)
        else:
            self.answer(200, "text/html", b"<title>Elsewhere</title>")

    def forward(self, host: str) -> None:
        address = urlsplit(self.path)
        connection = http.client.HTTPConnection(host, timeout=30)
        connection.request("GET", address._replace(scheme="", netloc="").geturl(), headers={"host": host})
        response = connection.getresponse()
        self.answer(response.status, response.headers.get("content-type", "text/plain"), response.read())
        connection.close()

    def answer(self, status: int, media_type: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", media_type)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_) -> None:
        pass


class OfflineProxy(Server):
    """A proxy for a machine without internet."""

    def __init__(self) -> None:
        super().__init__(ProxyHandler)
