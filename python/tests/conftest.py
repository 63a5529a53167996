"""Fixtures: one farm for all tests, and a small website."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

import webgym_rs as wg
from webgym_rs._binary import find_binary

ITERATION = "train_trajectories.pt.iteration0"
FARM_ARGUMENTS = ["--allow-private-network"]
FORM = """<title>Form</title><h1>Order</h1><form action=/ordered><input name=name aria-label=Name>
<button>Order</button></form><a href=/other>Other page</a><a href=/other target=_blank>New tab</a>
<input type=file id=file aria-label=Attachment onchange="document.title = this.files[0].name">
<script>localStorage.visits = 1 + Number(localStorage.visits || 0); document.cookie = "login=yes"</script>"""
DOWNLOAD = b"name,price\nlamp,12\n"


class Pages(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        address = urlsplit(self.path)
        name = parse_qs(address.query).get("name", ["nobody"])[0]
        pages = {"/": FORM, "/ordered": f"<title>Ordered</title><p>Thank you, {name}", "/other": "<title>Other</title>x"}
        if address.path == "/prices.csv":
            self._send(200, DOWNLOAD, "text/csv", attachment=True)
        elif address.path in pages:
            self._send(200, pages[address.path].encode(), "text/html")
        else:
            self._send(404, b"nothing here", "text/plain")

    def _send(self, status: int, body: bytes, media_type: str, attachment: bool = False) -> None:
        self.send_response(status)
        self.send_header("content-type", media_type)
        self.send_header("content-length", str(len(body)))
        if attachment:
            self.send_header("content-disposition", "attachment; filename=prices.csv")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="session")
def site() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="session")
def farm(archives: Path) -> Iterator[wg.Farm]:
    with wg.serve(4, arguments=[*FARM_ARGUMENTS, "--lease-minute=1", f"--archives={archives}"]) as farm:
        yield farm


@pytest.fixture(scope="session")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archives of the farm."""
    return tmp_path_factory.mktemp("archives")


@pytest.fixture
def session(farm: wg.Farm) -> Iterator[wg.Session]:
    with farm.lease(minutes=30) as session:
        yield session


def leases(farm: wg.Farm) -> list[str]:
    """Returns the ids of the leases that the farm has granted."""
    return [instance for node in farm.info()["nodes"] for instance in node["instances"]]


def wait_until(condition: Callable[[], bool], what: str, seconds: float = 30) -> None:
    """Waits for a condition; fails after a limit that only a hang reaches."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.05)


class Practice:
    """The practice sites, and their tasks."""

    def __init__(self, folder: Path):
        self.tasks = folder / "tasks.jsonl"
        command = [find_binary(), "practice", "--port=0", "--tasks", self.tasks, f"--exit-with-parent={os.getpid()}"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self.process.stdout is not None
        self.url: str = json.loads(self.process.stdout.readline())["url"]

    def easy_tasks(self) -> list[dict[str, Any]]:
        tasks = [json.loads(line) for line in self.tasks.read_text().splitlines()]
        return [task for task in tasks if task["difficulty"] == 1]


@pytest.fixture(scope="session")
def practice(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Practice]:
    practice = Practice(tmp_path_factory.mktemp("practice"))
    yield practice
    practice.process.terminate()
    practice.process.communicate()


class Run:
    """A small run with the built-in policy, and its journal, which was linked before the run removed it."""

    def __init__(self, folder: Path):
        self.save_path = folder / "run"
        self.pt = self.save_path / "train_trajectories" / ITERATION
        journal = self.pt.with_name(f"{ITERATION}.checkpoint")
        self.interrupted = folder / "interrupted"
        self.journal = self.interrupted / "train_trajectories" / journal.name
        self.journal.parent.mkdir(parents=True)
        command = [find_binary(), "-q", "demo", "--out", self.save_path, "--tasks", "4", "--instances", "2"]
        run = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_until(journal.exists, "the run begins its journal")
            os.link(journal, self.journal)
            assert run.wait(120) == 0
        finally:
            run.kill()
            run.wait()


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return Run(tmp_path_factory.mktemp("trajectories"))
