"""The session options of a lease. docs/sessions.md describes them; the names are Playwright's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict


class Viewport(TypedDict):
    """The size of the page in CSS pixels."""

    width: int
    height: int


class _Position(TypedDict):
    latitude: float
    longitude: float


class Geolocation(_Position, total=False):
    """A place; `accuracy` is in metres."""

    accuracy: float


class _Server(TypedDict):
    server: str


class Proxy(_Server, total=False):
    """An HTTP proxy for the pages of a lease."""

    username: str
    password: str


class Network(TypedDict, total=False):
    """Records the network traffic into an archive of the farm (`record`), or replays one (`replay`)."""

    record: str
    replay: str
    on_miss: Literal["fail", "404", "live"]
    """Requests that the archive cannot answer fail with `ReplayMiss`, are answered with 404, or go to the network."""
    session: str
    """A name; a replay prefers recordings of the same session."""
    seed: int
    clock: Literal["virtual", "real"]
    keep_secrets: bool
    redact_headers: Sequence[str]
    redact_query: Sequence[str]
    redact_fields: Sequence[str]
    ignore_keys: Sequence[str]
    scored: bool
    tunnel_hosts: Sequence[str]


class SessionOptions(TypedDict, total=False):
    """How the browser looks to websites, and what the session starts with."""

    viewport: Viewport
    device_scale_factor: float
    locale: str
    timezone_id: str
    color_scheme: Literal["light", "dark", "no-preference"]
    geolocation: Geolocation
    user_agent: str
    extra_http_headers: Mapping[str, str]
    permissions: Sequence[str]
    blocked_hosts: Sequence[str]
    blocked_resource_types: Sequence[str]
    proxy: Proxy
    storage_state: Mapping[str, Any]
    tabs: Literal["single", "many"]
    downloads: Literal["refuse", "keep"]
    record: bool
    network: Network
