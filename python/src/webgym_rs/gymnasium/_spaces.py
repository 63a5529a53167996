"""Observation and action spaces, and how actions become commands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias, cast

import numpy
from gymnasium import spaces

from .. import commands
from ..commands import Command
from ..observations import Observation, Screenshot

ScreenshotMode: TypeAlias = Literal["array", "lazy", "none"]
MAX_TEXT = 200_000
MAX_URL = 10_000
MAX_ELEMENT = 1000
ACTIONS = ("wait", "click", "type", "hover", "scroll_down", "scroll_up", "back", "press_enter", "goto", "answer")
"""What the number `action` of a structured action means."""
WAIT_SECONDS = 0.5


class AnyText(spaces.Text):
    """Any text up to a length; Gymnasium's own `Text` accepts only a given set of characters."""

    def __init__(self, max_length: int):
        super().__init__(max_length, min_length=0)

    def contains(self, x: Any) -> bool:
        return isinstance(x, str) and len(x) <= self.max_length

    def __repr__(self) -> str:
        return f"AnyText({self.max_length})"


class Image(spaces.Space[Screenshot]):
    """Screenshots of a size that are decoded on access."""

    def __init__(self, height: int, width: int):
        super().__init__((height, width, 3), numpy.uint8)

    @property
    def is_np_flattenable(self) -> bool:
        return False

    def contains(self, x: Any) -> bool:
        return isinstance(x, Screenshot) and (x.height, x.width, 3) == self.shape

    def sample(self, mask: Any = None, probability: Any = None) -> Screenshot:
        raise NotImplementedError("screenshots are not sampled; use screenshot='array'")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Image) and self.shape == other.shape


def observation_space(size: tuple[int, int], screenshot: ScreenshotMode) -> spaces.Dict:
    width, height = size
    texts: dict[str, spaces.Space[Any]] = {
        "ac_tree": AnyText(MAX_TEXT),
        "url": AnyText(MAX_URL),
        "goal": AnyText(MAX_TEXT),
    }
    if screenshot == "array":
        texts["screenshot"] = spaces.Box(0, 255, (height, width, 3), numpy.uint8)
    elif screenshot == "lazy":
        texts["screenshot"] = Image(height, width)
    return spaces.Dict(texts)


def structured_action_space() -> spaces.Dict:
    """An action by its number in `ACTIONS`, at an element id of the last screenshot or, if that is 0, at a point.

    A point is a share of width and height.
    """
    return spaces.Dict(
        {
            "action": spaces.Discrete(len(ACTIONS)),
            "element": spaces.Discrete(MAX_ELEMENT),
            "point": spaces.Box(0.0, 1.0, (2,), numpy.float32),
            "text": AnyText(MAX_TEXT),
        }
    )


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
    return numpy.array(screenshot.image.convert("RGB"))


def texts_of(observation: Observation, goal: str) -> dict[str, Any]:
    ac_tree, url = observation.ac_tree or "", observation.url or ""
    return {"ac_tree": ac_tree[:MAX_TEXT], "url": url[:MAX_URL], "goal": goal[:MAX_TEXT]}
