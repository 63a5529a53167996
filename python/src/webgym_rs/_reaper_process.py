"""Starts the reaper of this process and tells it of leases. Without a reaper, leases of a killed process end by expiry."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

from ._calls import Lease

STOP_SECONDS = 5
_lock = threading.Lock()
_current: ReaperProcess | None = None


class ReaperProcess:
    """The running reaper of a process."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        script = str(Path(__file__).with_name("_reaper.py"))
        # Isolated and without packages: it starts quickly, and nothing of the owner's configuration is run in it.
        command = [sys.executable, "-I", "-S", script, str(self.owner), json.dumps(sys.path)]
        null = subprocess.DEVNULL
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=null, stderr=null)
        assert self._process.stdin is not None
        self._orders = self._process.stdin.fileno()
        os.set_blocking(self._orders, False)

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, **order: str) -> None:
        # A line is shorter than what a pipe takes at once, so threads need no lock. A reaper that is gone is no error.
        with suppress(OSError):
            os.write(self._orders, json.dumps(order).encode() + b"\n")

    def end(self) -> None:
        self.send(order="end")
        with suppress(subprocess.TimeoutExpired):
            self._process.communicate(timeout=STOP_SECONDS)


def add(url: str, api_key: str, lease: Lease) -> None:
    """Notes a lease that is to be released if this process is killed."""
    reaper = _reaper()
    if reaper is not None:
        reaper.send(order="add", url=url, api_key=api_key, **lease.fields)


def remove(lease: Lease) -> None:
    """Notes that a lease was released or lost."""
    if _current is not None and _current.owner == os.getpid():
        _current.send(order="remove", instance_id=lease.instance_id)


def _reaper() -> ReaperProcess | None:
    """Returns the reaper of this process, which is another one after a fork; None if it cannot be started."""
    global _current
    with _lock:
        if _current is None or _current.owner != os.getpid():
            try:
                _current = ReaperProcess() if sys.executable else None
            except OSError:
                _current = None
        return _current


def _end() -> None:
    if _current is not None and _current.owner == os.getpid():
        _current.end()


def _unlock() -> None:
    """Another thread may have held the lock at the fork."""
    global _lock
    _lock = threading.Lock()


# Registered before the keepers' own functions, so it runs after them, when they have released everything.
atexit.register(_end)
os.register_at_fork(after_in_child=_unlock)
