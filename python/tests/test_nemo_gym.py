"""The provider for NeMo Gym, with the classes of its contract. `make test-nemo-gym` runs NeMo Gym itself."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest
from conftest import leases
from test_leases import key_of

import webgym_rs as wg
from webgym_rs.nemo_gym import WebgymSessionProvider


@dataclass(frozen=True)
class BrowserSessionSpec:
    metadata: dict[str, str] = field(default_factory=dict)
    provider_options: dict[str, Any] = field(default_factory=dict)


@dataclass
class BrowserSessionHandle:
    cdp_url: str
    session_id: str | None = None
    provider_name: str | None = None
    raw: Any = None


class BrowserSessionError(RuntimeError):
    pass


def test_session_is_acquired_and_released(farm: wg.Farm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEBGYM_API_KEY", key_of(farm))
    # A minute of a lease is one second in this farm, and nothing connects to the session here.
    monkeypatch.setattr("webgym_rs.nemo_gym.LEASE_MINUTES", 60)

    async def rollout() -> None:
        provider = WebgymSessionProvider(farm.url, session={"locale": "de-DE"})
        handle = await provider.acquire(BrowserSessionSpec({"rollout_id": "7"}))
        assert isinstance(handle, BrowserSessionHandle)
        assert leases(farm) == [handle.session_id]
        assert handle.cdp_url.startswith(f"{farm.url}/cdp/")
        await provider.release(handle)
        await provider.release(handle)
        assert leases(farm) == []

    asyncio.run(rollout())


def test_farm_errors_are_session_errors() -> None:
    provider = WebgymSessionProvider("http://127.0.0.1:1")
    with pytest.raises(BrowserSessionError, match=r"127\.0\.0\.1:1"):
        asyncio.run(provider.acquire(BrowserSessionSpec()))
