"""The sync counterparts of `_io_async`."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol, TypeVar

import httpx

T = TypeVar("T")
HttpClient = httpx.Client
sleep: Callable[[float], None] = time.sleep


def current_loop() -> object:
    """The sync client has no event loop."""
    return None


def run_blocking(function: Callable[[], T]) -> T:
    return function()


class _Startable(Protocol):
    def wait_ready(self) -> None: ...


F = TypeVar("F", bound=_Startable)


def started(farm: F) -> F:
    """Waits until the farm is ready."""
    farm.wait_ready()
    return farm
