"""An HTTP server for loopback that logs nothing and ends with this process."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def body(self) -> bytes:
        return self.rfile.read(int(self.headers["content-length"]))

    def reply(self, status: int, body: bytes, content_type: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("content-type", content_type)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def reply_json(self, status: int, body: dict) -> None:
        self.reply(status, json.dumps(body).encode())

    def log_message(self, *_) -> None:
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_) -> None:
        """Ignores clients that disconnect, as an interrupted run does."""


def serve(handler: type[Handler]) -> str:
    """Starts a server on a free port. Returns its URL."""
    server = Server(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"
