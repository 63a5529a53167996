"""What differs between the async client and the sync one that is generated from it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator
from types import TracebackType
from typing import Any, Generic, Protocol, TypeVar

import anyio
import anyio.to_thread
import httpx

T = TypeVar("T")
HttpClient = httpx.AsyncClient
sleep: Callable[[float], Awaitable[None]] = anyio.sleep


def current_loop() -> object:
    """Returns the running event loop of asyncio. Those of trio are not told apart."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


async def run_blocking(function: Callable[[], T]) -> T:
    """Runs a function that waits, without blocking the event loop."""
    return await anyio.to_thread.run_sync(function)


def started(farm: T) -> T:
    """Returns the farm, which waits until it is ready with its first request."""
    return farm


class _Context(Protocol):
    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


C = TypeVar("C", bound=_Context)


class Pending(Generic[C]):
    """A session that is being acquired: use it with `async with`, or `await` it."""

    def __init__(self, coroutine: Coroutine[Any, Any, C]):
        self._coroutine = coroutine
        self._acquired: C | None = None

    def __await__(self) -> Generator[Any, Any, C]:
        return self._coroutine.__await__()

    async def __aenter__(self) -> C:
        self._acquired = await self._coroutine
        return self._acquired

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._acquired is not None:
            await self._acquired.__aexit__(kind, error, trace)
