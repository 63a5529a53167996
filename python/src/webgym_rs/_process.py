"""A `webgym` program that this process starts and ends. It also ends when this process ends, however that happens."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from typing import IO, Any

from ._binary import find_binary

STOP_SECONDS = 20
LOG_BYTES = 4000


class SupervisedProcess:
    """A running command of `webgym`, whose events are read until it ends."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]):
        self.name = f"webgym {command[0]}"
        self._log: IO[bytes] = tempfile.TemporaryFile()
        # In its own session, so that Ctrl-C reaches this process only, which then ends it in order.
        self._process = subprocess.Popen(
            [str(find_binary()), *command, f"--exit-with-parent={os.getpid()}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env={**os.environ, **environment},
            start_new_session=True,
        )
        self._owner = os.getpid()
        self._reader = threading.Thread(target=self._read_events, name="webgym-events", daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def on_event(self, event: Mapping[str, Any]) -> None:
        """Called on a thread for each event that the program prints."""

    def on_end(self) -> None:
        """Called on that thread when the program prints nothing any more."""

    def _read_events(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                # Results for people are printed between the events.
                if line.startswith(b'{"event"'):
                    self.on_event(json.loads(line))
        self.on_end()

    def status(self) -> int | None:
        """Returns the exit status; None while it runs."""
        return self._process.poll()

    def wait(self, seconds: float | None = None) -> int:
        """Waits until the program has ended and its events were handled, and returns its exit status."""
        status = self._process.wait(seconds)
        # The output stays open only if the program left another one behind.
        self._reader.join(STOP_SECONDS)
        return status

    def log_end(self) -> str:
        """Returns the last lines that the program logged."""
        if self._log.closed:
            return "(the program was stopped)"
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
