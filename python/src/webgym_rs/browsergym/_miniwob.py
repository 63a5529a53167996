"""Serves the pages of MiniWoB, which a farm loads over HTTP only."""

from __future__ import annotations

import os
import threading
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any

VARIABLE = "MINIWOB_URL"


class _Handler(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignores clients that disconnect."""


def _pages() -> Path:
    """Returns the folder with the pages of the installed package `miniwob`."""
    spec = find_spec("miniwob")
    if spec is None or spec.origin is None:
        raise ImportError("the package miniwob, which contains the pages, is not installed; run: pip install miniwob")
    return Path(spec.origin).parent / "html"


@contextmanager
def serve_miniwob() -> Generator[str, None, None]:
    """Serves the pages on loopback and sets MINIWOB_URL, for a farm on this machine with `--allow-private-network`."""
    server = _Server(("127.0.0.1", 0), partial(_Handler, directory=str(_pages())))
    previous = os.environ.get(VARIABLE)
    threading.Thread(target=server.serve_forever, name="miniwob-pages", daemon=True).start()
    try:
        os.environ[VARIABLE] = f"http://127.0.0.1:{server.server_port}/miniwob/"
        yield os.environ[VARIABLE]
    finally:
        if previous is None:
            os.environ.pop(VARIABLE, None)
        else:
            os.environ[VARIABLE] = previous
        server.shutdown()
        server.server_close()
