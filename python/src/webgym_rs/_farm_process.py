"""Starts a server of `webgym` and ends it. The program also ends by itself when this process ends, however that happens."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from typing import IO, TYPE_CHECKING

from ._binary import find_binary
from .errors import FarmStartError

if TYPE_CHECKING:
    from typing_extensions import Self

STOP_SECONDS = 20
LOG_BYTES = 4000


class FarmProcess:
    """A running `webgym serve`, `webgym master` or `webgym node`."""

    def __init__(self, command: Sequence[str], *, tier: str, ready_seconds: float, api_key: str | None = None):
        """Starts a command. `tier` is that of the server whose URL counts."""
        self.api_key = api_key or secrets.token_urlsafe(24)
        self._name, self._tier = f"webgym {command[0]}", tier
        self._ready_seconds = ready_seconds
        self._log: IO[bytes] = tempfile.TemporaryFile()
        self._ready = threading.Event()
        self._url: str | None = None
        # In its own session, so that Ctrl-C reaches this process only, which then releases its leases.
        self._process = subprocess.Popen(
            [str(find_binary()), *command, f"--exit-with-parent={os.getpid()}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env={**os.environ, "WEBGYM_API_KEY": self.api_key},
            start_new_session=True,
        )
        self._owner = os.getpid()
        threading.Thread(target=self._read_events, name="webgym-events", daemon=True).start()

    @classmethod
    def serve(cls, instances: int, arguments: Sequence[str], ready_seconds: float) -> Self:
        """Starts a farm on free ports of this machine."""
        command = ["serve", str(instances), "--master-port=0", "--node-port=0", "--no-mirror", *arguments]
        return cls(command, tier="master", ready_seconds=ready_seconds)

    @property
    def pid(self) -> int:
        return self._process.pid

    def _read_events(self) -> None:
        """Reads the events that the program prints, until it ends."""
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                event = json.loads(line)
                if event.get("tier") == self._tier:
                    self._url = event["url"]
                if event.get("event") == "ready":
                    self._ready.set()
        self._ready.set()

    def wait_ready(self) -> str:
        """Waits until the browsers can be leased. Returns the URL of the farm."""
        if not self._ready.wait(self._ready_seconds):
            raise self._failure(f"{self._name} was not ready within {self._ready_seconds:g} s")
        if self._url is None or self._process.poll() is not None:
            raise self._failure(f"{self._name} ended with status {self._process.wait()}")
        return self._url

    def _failure(self, reason: str) -> FarmStartError:
        """Ends the program and returns the error, with the end of its log."""
        log = self._log_end()
        self.stop()
        return FarmStartError(f"{reason}. Its log:\n{log}")

    def _log_end(self) -> str:
        if self._log.closed:
            return "(the farm was stopped)"
        self._log.seek(0, os.SEEK_END)
        self._log.seek(max(0, self._log.tell() - LOG_BYTES))
        return self._log.read().decode(errors="replace").strip() or "(empty)"

    def stop(self) -> None:
        """Ends the program and waits for it. Does nothing in a process that was forked from the owner."""
        if os.getpid() != self._owner:
            return
        for number in (signal.SIGTERM, signal.SIGKILL):
            if self._process.poll() is not None:
                break
            self._process.send_signal(number)
            try:
                self._process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                continue
        self._log.close()
