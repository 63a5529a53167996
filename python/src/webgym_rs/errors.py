"""One exception class for each error code of the farm.

Three families tell apart who has to act: `InfrastructureError` (the farm or the connection; retry on another session and
never count it as a failure of the agent), `AgentError` (the action could not be carried out on the page; show it to the
agent) and `RequestError` (the program that calls the farm is wrong).
"""

from __future__ import annotations

import json
from typing import Any, ClassVar, cast


class WebgymError(Exception):
    """Base class. `code` is the farm's error code, `detail` its sentence, `status` the HTTP status if there was one."""

    code: ClassVar[str | None] = None

    def __init__(self, detail: str, status: int | None = None):
        super().__init__(detail)
        self.detail = detail
        self.status = status


class InfrastructureError(WebgymError):
    """The farm, a browser or the connection failed. Acquire another session and try again."""


class AgentError(WebgymError):
    """The action could not be carried out on this page. The session is still usable."""


class RequestError(WebgymError):
    """The request is wrong; sending it again does not help."""


class FarmStartError(WebgymError):
    """`webgym serve` could not be started. The message has the end of its log."""


class RolloutError(WebgymError):
    """`webgym rollout` failed or was stopped. The message has the reason, or the end of its log."""


class StreamError(WebgymError):
    """The stream of a run refused a request."""


class StreamUnreachable(StreamError):
    """The stream of a run does not answer. A resumed run continues it with the same cursors."""


class FarmUnreachable(InfrastructureError):
    """The farm does not answer, or the connection broke before the response was complete."""


class UnknownFarmError(InfrastructureError):
    """An error response without a code that this version knows."""


class InstanceLost(InfrastructureError):
    """The browser of the session crashed or was ended."""

    code = "instance_lost"


class NoCapacity(InfrastructureError):
    """All sessions are leased, and none became free within the wait."""

    code = "no_capacity"


class NodeUnreachable(InfrastructureError):
    """The node of the session cannot be reached."""

    code = "node_unreachable"


class UnknownNode(InfrastructureError):
    """The node of the session is no longer part of the farm."""

    code = "unknown_node"


class InvalidInstance(InfrastructureError):
    """The lease has ended: it was released, or expired."""

    code = "invalid_instance"


class NotInUse(InfrastructureError):
    """The lease was already released."""

    code = "not_in_use"


class ShuttingDown(InfrastructureError):
    """The farm is stopping."""

    code = "shutting_down"


class Internal(InfrastructureError):
    """A bug or a broken component of the farm."""

    code = "internal"


class ReplayMiss(InfrastructureError):
    """A page of a replay requested what the archive does not have. Another session would miss it too."""

    code = "replay_miss"


class ElementNotFound(AgentError):
    """The element id is not, or no longer, on the page."""

    code = "element_not_found"


class NavigationFailed(AgentError):
    """The page did not load; the previous page is still open."""

    code = "navigation_failed"


class UrlRefused(AgentError):
    """Pages may not reach this address, or its scheme is not allowed."""

    code = "url_refused"


class UnsupportedAction(AgentError):
    """The action exists in the model's dialect, but a browser session cannot do it."""

    code = "unsupported_action"


class ConfirmationRequired(AgentError):
    """A person has to confirm the model's action, which was not carried out."""

    code = "confirmation_required"


class PageTimeout(AgentError):
    """The page did not answer in time."""

    code = "timeout"


class BadRequest(RequestError):
    """The request is malformed."""

    code = "bad_request"


class ForkDiffers(RequestError):
    """A fork did not reach the state of its original; the message names the first difference."""

    code = "fork_differs"


class NotFound(RequestError):
    """The path, or the file, does not exist."""

    code = "not_found"


class MissingKey(RequestError):
    """The API key is missing."""

    code = "missing_key"


class WrongKey(RequestError):
    """The API key is wrong."""

    code = "wrong_key"


class TooLarge(RequestError):
    """The body, or the file, is too large."""

    code = "too_large"


def _with_codes(base: type[WebgymError]) -> dict[str, type[WebgymError]]:
    found = {} if base.code is None else {base.code: base}
    for subclass in base.__subclasses__():
        found.update(_with_codes(subclass))
    return found


BY_CODE: dict[str, type[WebgymError]] = _with_codes(WebgymError)
"""The exception class of each error code."""


def error_of(code: str | None, detail: str, status: int | None = None) -> WebgymError:
    """Returns the exception for an error code."""
    return BY_CODE.get(code or "", UnknownFarmError)(detail, status)


def error_of_response(status: int, body: bytes) -> WebgymError:
    """Returns the exception for an HTTP error response."""
    try:
        parsed: Any = json.loads(body)
    except ValueError:
        parsed = None
    if isinstance(parsed, dict):
        fields = cast("dict[str, Any]", parsed)
        return error_of(fields.get("code"), str(fields.get("detail", fields)), status)
    text = body[:200].decode(errors="replace").strip()
    return UnknownFarmError(f"the farm answered with status {status}: {text!r}", status)
