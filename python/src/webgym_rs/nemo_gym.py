"""A session provider for NeMo Gym: each rollout of its interactive browser environment leases a session of a farm.

The package registers it as `webgym` in the entry point group `nemo_gym.browser_session_providers`, so that a
configuration selects it by name:

    backend:
      remote_cdp:
        session_provider:
          webgym: {url: "http://host:7000"}

The key comes from WEBGYM_API_KEY. NeMo Gym makes a provider for each rollout; they share the connection to the farm.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import weakref
from collections.abc import Mapping
from typing import Any, Protocol

from .aio import Farm, Session
from .errors import WebgymError

logger = logging.getLogger(__name__)

LEASE_MINUTES = 1
"""How long a lease outlives its connection. The open connection keeps it."""


class SessionSpec(Protocol):
    """NeMo Gym's `BrowserSessionSpec`."""

    @property
    def metadata(self) -> dict[str, str]: ...
    @property
    def provider_options(self) -> dict[str, Any]: ...


class SessionHandle(Protocol):
    """NeMo Gym's `BrowserSessionHandle`."""

    cdp_url: str
    session_id: str | None
    provider_name: str | None
    raw: Any


# A connection belongs to the event loop that uses it.
_farms: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, Farm]] = weakref.WeakKeyDictionary()


def _farm(url: str) -> Farm:
    farms = _farms.setdefault(asyncio.get_running_loop(), {})
    if url not in farms:
        farms[url] = Farm(url)
    return farms[url]


class WebgymSessionProvider:
    """Leases a session for each rollout.

    `url` is the address of the farm. `wait_s` is how long a rollout waits for a free session. `session` has session
    options (docs/sessions.md) of every lease; `provider_options` of the backend are session options, too, and win.
    """

    name = "webgym"

    def __init__(self, url: str, wait_s: float = 60.0, session: Mapping[str, Any] | None = None):
        self._url = url
        self._wait = wait_s
        self._session = dict(session or {})

    async def acquire(self, spec: SessionSpec) -> SessionHandle:
        """Returns a handle to a session that accepts CDP connections."""
        # The environment is run as a package and as a script, under two module names; the spec is of the right one.
        contract = sys.modules[type(spec).__module__]
        options: dict[str, Any] = {**self._session, **spec.provider_options}
        try:
            session: Session = await _farm(self._url).lease(
                minutes=LEASE_MINUTES, wait=self._wait, keep_alive=False, **options
            )
        except WebgymError as error:
            raise contract.BrowserSessionError(f"no session of the farm {self._url}: {error}") from error
        if session.cdp_url is None:
            await session.release()
            raise contract.BrowserSessionError(f"the farm {self._url} has no CDP endpoint; update webgym")
        logger.info("lease %s is held by %s", session.id, dict(spec.metadata))
        return contract.BrowserSessionHandle(
            cdp_url=session.cdp_url, session_id=session.id, provider_name=self.name, raw=session
        )

    async def release(self, handle: SessionHandle) -> None:
        """Releases the lease. A lease that has ended, or a handle that was released before, is no error."""
        session: Session | None = handle.raw
        handle.raw = None
        if session is None:
            return
        try:
            await session.release()
        except WebgymError as error:
            logger.warning("the lease %s was not released, and will expire: %s", handle.session_id, error)
