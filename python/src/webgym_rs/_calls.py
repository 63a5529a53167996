"""The farm's HTTP API without I/O: builds each request and parses its response. Both clients send what this returns."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeAlias, TypeVar, cast
from urllib.parse import quote

import msgpack

from .commands import CommandLike, to_json
from .errors import AgentError, UnknownFarmError, error_of_response
from .observations import ComputerResult, File, Observation, Screenshot

T = TypeVar("T")
Include: TypeAlias = Literal["screenshot", "metadata", "ac_tree", "rects"]
InteractionMode: TypeAlias = Literal["set_of_marks", "coordinates"]
ImageFormat: TypeAlias = Literal["png", "jpeg", "webp"]
Dialect: TypeAlias = Literal["openai", "anthropic", "gemini", "qwen", "ui_tars"]

# A fork carries out all steps of its original again.
FORK_SECONDS = 600.0
MSGPACK = "application/msgpack"
unpack = cast("Callable[[bytes], Any]", msgpack.unpackb)  # pyright: ignore[reportUnknownMemberType]


@dataclass(frozen=True)
class Response:
    """The parts of an HTTP response that the parsers need."""

    status: int
    content: bytes
    media_type: str


@dataclass(frozen=True)
class Call(Generic[T]):
    """A request and the parser of its response."""

    method: str
    path: str
    parse: Callable[[Response], T]
    query: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes | None = None
    accept: str = "application/json"
    repeatable: bool = False
    """Whether the request may be sent again when its response was lost."""
    extra_seconds: float = 0
    """The time that the farm may take in addition to the client's limit."""


@dataclass(frozen=True)
class Lease:
    """The right to one browser session. Anyone who knows one of the URLs can use or watch it."""

    instance_id: str
    node: str
    cdp_url: str | None = field(default=None, repr=False)
    live_url: str | None = field(default=None, repr=False)
    live_control_url: str | None = field(default=None, repr=False)

    @property
    def fields(self) -> dict[str, str]:
        return {"instance_id": self.instance_id, "node": self.node}


def checked(response: Response) -> Response:
    """Raises the exception of an error response."""
    if response.status != 200:
        raise error_of_response(response.status, response.content)
    return response


def _json(response: Response) -> Any:
    content = checked(response).content
    try:
        return json.loads(content)
    except ValueError as error:
        text = content[:200].decode(errors="replace")
        raise UnknownFarmError(f"the farm answered with something else than JSON: {text!r}") from error


def _done(response: Response) -> None:
    checked(response)


def _bytes(response: Response) -> bytes:
    return checked(response).content


def _encode(body: Mapping[str, Any]) -> bytes:
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()


def acquire(minutes: int, wait: float, options: Mapping[str, Any]) -> Call[Lease]:
    # The key makes the request repeatable: it returns the same lease.
    body = _encode(options) if options else None
    return Call("POST", "/get", _parse_lease, _lease_query(minutes, wait), body, repeatable=True, extra_seconds=wait)


def fork(lease: Lease, steps: int | None, minutes: int, wait: float) -> Call[Lease]:
    query = {**lease.fields, **_lease_query(minutes, wait)}
    if steps is not None:
        query["steps"] = str(steps)
    return Call("POST", "/fork", _parse_lease, query, repeatable=True, extra_seconds=wait + FORK_SECONDS)


def _lease_query(minutes: int, wait: float) -> dict[str, str]:
    return {"lifetime_mins": str(minutes), "wait_secs": str(wait), "idempotency_key": uuid.uuid4().hex}


def _parse_lease(response: Response) -> Lease:
    wire = _json(response)
    urls = (wire.get(name) for name in ("cdp_url", "live_url", "live_control_url"))
    return Lease(wire["instance_id"], wire["node"], *urls)


def release(lease: Lease) -> Call[None]:
    return Call("POST", "/reset", _done, lease.fields)


def probe(lease: Lease) -> Call[None]:
    return Call("GET", "/probe", _done, lease.fields, repeatable=True)


def info() -> Call[dict[str, Any]]:
    return Call("GET", "/info", _json, repeatable=True)


def execute(lease: Lease, command: CommandLike) -> Call[dict[str, Any]]:
    return Call("POST", "/execute", _json, body=_encode({**lease.fields, **to_json(command)}))


def _parse_observation(response: Response) -> Observation:
    content = checked(response).content
    # Only a farm without MessagePack answers with JSON.
    wire = unpack(content) if response.media_type == MSGPACK else _json(response)
    observation = Observation.parse(wire)
    if observation.error is not None and not isinstance(observation.error, AgentError):
        raise observation.error
    return observation


def _observe_body(
    lease: Lease, include: Sequence[Include], mode: InteractionMode, image_format: ImageFormat
) -> dict[str, Any]:
    return {**lease.fields, "include": list(include), "interaction_mode": mode, "format": image_format}


def step(
    lease: Lease,
    command: CommandLike,
    include: Sequence[Include],
    mode: InteractionMode,
    image_format: ImageFormat,
) -> Call[Observation]:
    body = {**_observe_body(lease, include, mode, image_format), "command": to_json(command)}
    return Call("POST", "/step", _parse_observation, body=_encode(body), accept=MSGPACK)


def observe(lease: Lease, include: Sequence[Include], mode: InteractionMode, image_format: ImageFormat) -> Call[Observation]:
    body = _encode(_observe_body(lease, include, mode, image_format))
    return Call("POST", "/observe", _parse_observation, body=body, accept=MSGPACK, repeatable=True)


def viewport(lease: Lease) -> Call[tuple[int, int]]:
    def parse(response: Response) -> tuple[int, int]:
        wire = _json(response)
        return wire["width"], wire["height"]

    return Call("GET", "/metadata", parse, lease.fields, repeatable=True)


def computer(
    lease: Lease,
    dialect: str,
    action: Any,
    version: str | None,
    display: tuple[int, int] | None,
    acknowledge_safety_checks: bool,
) -> Call[ComputerResult]:
    body = {**lease.fields, "dialect": dialect, "action": action, "version": version}
    body["display"] = {"width": display[0], "height": display[1]} if display else None
    body["acknowledge_safety_checks"] = acknowledge_safety_checks

    def parse(response: Response) -> ComputerResult:
        return ComputerResult.parse(_json(response))

    return Call("POST", "/computer", parse, body=_encode(body))


def screenshot(lease: Lease, mode: InteractionMode, image_format: ImageFormat) -> Call[Screenshot]:
    def parse(response: Response) -> Screenshot:
        found = _parse_observation(response).screenshot
        if found is None:
            raise UnknownFarmError("the farm took no screenshot")
        return found

    body = _encode(_observe_body(lease, ["screenshot"], mode, image_format))
    return Call("POST", "/observe", parse, body=body, accept=MSGPACK, repeatable=True)


def storage_state(lease: Lease) -> Call[dict[str, Any]]:
    return Call("GET", "/storage_state", _json, lease.fields, repeatable=True)


def set_storage_state(lease: Lease, state: Mapping[str, Any]) -> Call[None]:
    return Call("PUT", "/storage_state", _done, lease.fields, _encode(state), repeatable=True)


def list_files(lease: Lease) -> Call[list[File]]:
    def parse(response: Response) -> list[File]:
        return [File.parse(file) for file in _json(response)["files"]]

    return Call("GET", "/files", parse, lease.fields, repeatable=True)


def _file_path(name: str) -> str:
    return f"/files/{quote(name, safe='')}"


def read_file(lease: Lease, name: str) -> Call[bytes]:
    return Call("GET", _file_path(name), _bytes, lease.fields, accept="*/*", repeatable=True)


def recording(lease: Lease, name: str) -> Call[bytes]:
    return Call("GET", f"/recording/{name}", _bytes, lease.fields, accept="*/*", repeatable=True)


def network(lease: Lease) -> Call[dict[str, Any]]:
    return Call("GET", "/network", _json, lease.fields, repeatable=True)


def write_file(lease: Lease, name: str, content: bytes) -> Call[None]:
    return Call("PUT", _file_path(name), _done, lease.fields, content, repeatable=True)


def delete_file(lease: Lease, name: str) -> Call[None]:
    return Call("DELETE", _file_path(name), _done, lease.fields)
