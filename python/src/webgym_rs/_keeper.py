"""Keeps leases alive while their session exists, and releases those that a program forgot.

One thread for each farm and process does this with its own connection, so it works for the sync and the async client, and
while the program is busy. A lease that is used needs nothing: every request renews it. A reaper releases the leases of a
program that is killed.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue

import httpx

from . import _calls, _reaper_process
from ._calls import Call, Lease, Response
from .errors import InvalidInstance, WebgymError

REQUEST_SECONDS = 10
IDLE_SHARE = 1 / 3
"""The share of its lifetime after which an unused lease is renewed."""


@dataclass
class _Held:
    lease: Lease
    idle_seconds: float
    renewed: float


class LeaseKeeper:
    """The leases of one client. `has_reaper` is for farms that do not end with this process."""

    def __init__(self, url: str, api_key: str, *, has_reaper: bool):
        self._has_reaper = has_reaper
        self._url, self._api_key, self._owner = url, api_key, os.getpid()
        self._held: dict[str, _Held] = {}
        # The one queue that finalisers may use: they can run anywhere, also in a thread that holds its lock.
        self._orders: SimpleQueue[Lease | None] = SimpleQueue()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closed = False
        atexit.register(self.close)

    def add(self, lease: Lease, minutes: float, keep_alive: bool) -> None:
        # 0 minutes stand for the farm's maximum, which is at least one.
        idle = max(minutes, 1) * 60 * IDLE_SHARE if keep_alive else float("inf")
        if self._has_reaper:
            _reaper_process.add(self._url, self._api_key, lease)
        self._held[lease.instance_id] = _Held(lease, idle, time.monotonic())
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="webgym-leases", daemon=True)
                self._thread.start()
        self._orders.put(None)

    def renew(self, lease: Lease) -> None:
        """Notes that the lease was used just now."""
        held = self._held.get(lease.instance_id)
        if held is not None:
            held.renewed = time.monotonic()

    def remove(self, lease: Lease) -> None:
        """Forgets a lease that was released or lost."""
        self._held.pop(lease.instance_id, None)
        if self._has_reaper:
            _reaper_process.remove(lease)

    def release_soon(self, lease: Lease) -> None:
        """Releases a lease in the background. Safe in finalisers and in forked processes."""
        if os.getpid() == self._owner and self._held.pop(lease.instance_id, None) is not None:
            self._orders.put(lease)

    @property
    def is_closed(self) -> bool:
        """Whether the leases were released, or are being released."""
        return self._closed

    def close(self) -> None:
        """Releases every lease that is still held, and ends the thread."""
        atexit.unregister(self.close)
        if os.getpid() != self._owner or self._closed:
            return
        self._closed = True
        for held in list(self._held.values()):
            self.release_soon(held.lease)
        self._orders.put(None)
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        with _http(self._url, self._api_key) as http:
            while not (self._closed and self._orders.empty()):
                lease = self._next_order()
                if lease is not None and not self._release(http, lease):
                    return
                if lease is None and not self._closed:
                    self._renew_idle(http)

    def _release(self, http: httpx.Client, lease: Lease) -> bool:
        """Returns false at the end of the program if the farm does not answer: the others are left to reaper and expiry."""
        try:
            _send(http, _calls.release(lease))
        except httpx.TimeoutException:
            return not self._closed
        except httpx.HTTPError:
            pass
        self.remove(lease)
        return True

    def _next_order(self) -> Lease | None:
        """Waits for a lease to release, or until the next one is to be renewed."""
        now = time.monotonic()
        due = min((held.renewed + held.idle_seconds - now for held in list(self._held.values())), default=float("inf"))
        try:
            return self._orders.get(timeout=None if due == float("inf") else max(0.0, due))
        except Empty:
            return None

    def _renew_idle(self, http: httpx.Client) -> None:
        for held in list(self._held.values()):
            if time.monotonic() - held.renewed >= held.idle_seconds:
                held.renewed = time.monotonic()
                with suppress(httpx.HTTPError):
                    if isinstance(_send(http, _calls.probe(held.lease)), InvalidInstance):
                        self.remove(held.lease)


def _http(url: str, api_key: str) -> httpx.Client:
    return httpx.Client(base_url=url, headers={"x-api-key": api_key}, timeout=REQUEST_SECONDS, trust_env=False)


def _send(http: httpx.Client, call: Call[None]) -> WebgymError | None:
    """Sends a call and returns the farm's error. What cannot be sent is left to the expiry of the lease."""
    response = http.request(call.method, call.path, params=dict(call.query))
    try:
        call.parse(Response(response.status_code, response.content, ""))
    except WebgymError as error:
        return error
    return None


def release_all(leases: Sequence[Mapping[str, str]]) -> None:
    """Releases the leases of a process that has ended: `url`, `api_key`, `instance_id` and `node` of each."""
    for url, api_key in {(lease["url"], lease["api_key"]) for lease in leases}:
        with _http(url, api_key) as http:
            for lease in leases:
                if (lease["url"], lease["api_key"]) == (url, api_key):
                    with suppress(httpx.HTTPError):
                        _send(http, _calls.release(Lease(lease["instance_id"], lease["node"])))
