"""Starts a server of `webgym` and ends it. The program also ends by itself when this process ends, however that happens."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ._process import SupervisedProcess
from .errors import FarmStartError

if TYPE_CHECKING:
    from typing_extensions import Self


class FarmProcess(SupervisedProcess):
    """A running `webgym serve`, `webgym master` or `webgym node`."""

    def __init__(self, command: Sequence[str], *, tier: str, ready_seconds: float, api_key: str | None = None):
        """Starts a command. `tier` is that of the server whose URL counts."""
        self.api_key = api_key or secrets.token_urlsafe(24)
        self._tier = tier
        self._ready_seconds = ready_seconds
        self._ready = threading.Event()
        self._url: str | None = None
        super().__init__(command, {"WEBGYM_API_KEY": self.api_key})

    @classmethod
    def serve(cls, instances: int, arguments: Sequence[str], ready_seconds: float) -> Self:
        """Starts a farm on free ports of this machine."""
        command = ["serve", str(instances), "--master-port=0", "--node-port=0", "--no-mirror", *arguments]
        return cls(command, tier="master", ready_seconds=ready_seconds)

    def on_event(self, event: Mapping[str, Any]) -> None:
        if event.get("tier") == self._tier:
            self._url = event["url"]
        if event["event"] == "ready":
            self._ready.set()

    def on_end(self) -> None:
        self._ready.set()

    def wait_ready(self) -> str:
        """Waits until the browsers can be leased. Returns the URL of the farm."""
        if not self._ready.wait(self._ready_seconds):
            raise self._failure(f"{self.name} was not ready within {self._ready_seconds:g} s")
        if self._url is None or self.status() is not None:
            raise self._failure(f"{self.name} ended with status {self.wait()}")
        return self._url

    def _failure(self, reason: str) -> FarmStartError:
        """Ends the program and returns the error, with the end of its log."""
        log = self.log_end()
        self.stop()
        return FarmStartError(f"{reason}. Its log:\n{log}")
