"""Keeps leases alive while their session exists, and releases those that a program forgot.

One thread for each farm and process does this with its own connection, so it works for the sync and the async client, and
while the program is busy. A lease that is used needs nothing: every request renews it.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from dataclasses import dataclass
from queue import Empty, SimpleQueue

import httpx

from . import _calls
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
    """The leases of one client."""

    def __init__(self, url: str, api_key: str):
        self._url, self._api_key, self._owner = url, api_key, os.getpid()
        self._held: dict[str, _Held] = {}
        # The one queue that finalisers may use: they can run anywhere, also in a thread that holds its lock.
        self._orders: SimpleQueue[Lease | None] = SimpleQueue()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closed = False
        atexit.register(self.close)

    def add(self, lease: Lease, minutes: float, keep_alive: bool) -> None:
        idle = minutes * 60 * IDLE_SHARE if keep_alive and minutes > 0 else float("inf")
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

    def release_soon(self, lease: Lease) -> None:
        """Releases a lease in the background. Safe in finalisers and in forked processes."""
        if os.getpid() == self._owner and self._held.pop(lease.instance_id, None) is not None:
            self._orders.put(lease)

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
        headers = {"x-api-key": self._api_key}
        with httpx.Client(base_url=self._url, headers=headers, timeout=REQUEST_SECONDS, trust_env=False) as http:
            while not (self._closed and self._orders.empty()):
                lease = self._next_order()
                if lease is not None:
                    self._send(http, _calls.release(lease))
                elif not self._closed:
                    self._renew_idle(http)

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
                if isinstance(self._send(http, _calls.probe(held.lease)), InvalidInstance):
                    self.remove(held.lease)

    def _send(self, http: httpx.Client, call: Call[None]) -> WebgymError | None:
        """Sends a call and returns its error. What cannot be sent is left to the expiry of the lease."""
        try:
            response = http.request(call.method, call.path, params=dict(call.query))
            call.parse(Response(response.status_code, response.content, ""))
        except WebgymError as error:
            return error
        except httpx.HTTPError:
            pass
        return None
