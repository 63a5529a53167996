"""Observation and action spaces."""

from __future__ import annotations

from typing import Any

import numpy
from gymnasium import spaces

from .._episodes.actions import ACTIONS, MAX_TEXT, MAX_URL, ScreenshotMode
from ..observations import Screenshot

MAX_ELEMENT = 1000


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
