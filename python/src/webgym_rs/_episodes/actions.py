"""Actions of the agent and how they become commands, and what an observation shows. Needs no other package."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from .. import commands
from ..commands import Command
from ..observations import Observation, Screenshot

if TYPE_CHECKING:
    import numpy

ScreenshotMode: TypeAlias = Literal["array", "lazy", "none"]
MAX_TEXT = 200_000
MAX_URL = 10_000
ACTIONS = ("wait", "click", "type", "hover", "scroll_down", "scroll_up", "back", "press_enter", "goto", "answer")
"""What the number `action` of a structured action means."""
WAIT_SECONDS = 0.5


class Answer(str):
    """The answer of the agent, which ends the episode."""


def parse_action(action: Any, size: tuple[int, int]) -> Command | Answer | str:
    """Returns the command of an action: a command, an answer, a structured action, or the text of a tool call."""
    if isinstance(action, (Command, str)):
        return action
    if isinstance(action, Mapping):
        fields = cast("Mapping[str, Any]", action)
        if "action" in fields:
            return _structured(fields, size)
        if len(fields) == 1:
            return Command(*next(iter(fields.items())))
    raise TypeError(
        f"the action is {action!r}; it must be a command, an Answer, a structured action or the text of a tool call"
    )


def _structured(fields: Mapping[str, Any], size: tuple[int, int]) -> Command | Answer:
    number, text = int(fields["action"]), str(fields.get("text", ""))
    if not 0 <= number < len(ACTIONS):
        raise ValueError(f"action is {number}; it must be 0 to {len(ACTIONS) - 1}, a number of webgym_rs.gymnasium.ACTIONS")
    name = ACTIONS[number]
    element = int(fields.get("element", 0))
    shares = fields.get("point", (0.0, 0.0))
    if len(shares) != 2:
        raise ValueError(f"point is {shares!r}; it must be two shares, of width and height")
    x, y = (round(float(share) * (length - 1)) for share, length in zip(shares, size, strict=True))
    target: dict[str, Any] = {"id": element} if element else {"x": x, "y": y}
    built: dict[str, Any] = {
        "wait": lambda: commands.wait(WAIT_SECONDS),
        "click": lambda: commands.click(**target),
        "type": lambda: commands.fill(text, **target, press_enter=False, delete_existing=True),
        "hover": lambda: commands.hover(**target),
        "scroll_down": lambda: commands.page_down(full_page=True),
        "scroll_up": lambda: commands.page_up(full_page=True),
        "back": commands.back,
        "press_enter": lambda: commands.press("enter"),
        "goto": lambda: commands.visit(text),
        "answer": lambda: Answer(text),
    }
    return built[name]()


def decode(screenshot: Screenshot) -> numpy.ndarray[Any, numpy.dtype[numpy.uint8]]:
    """Returns the pixels in an array of their own."""
    import numpy

    return numpy.array(screenshot.image.convert("RGB"))


def blank(width: int, height: int) -> numpy.ndarray[Any, numpy.dtype[numpy.uint8]]:
    """Returns a black image, for episodes without a page."""
    import numpy

    return numpy.zeros((height, width, 3), numpy.uint8)


def texts_of(observation: Observation, goal: str) -> dict[str, Any]:
    ac_tree, url = observation.ac_tree or "", observation.url or ""
    return {"ac_tree": ac_tree[:MAX_TEXT], "url": url[:MAX_URL], "goal": goal[:MAX_TEXT]}
