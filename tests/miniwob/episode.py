"""One episode of a task: starts it, reads the page through the "Read" button of drive.html, and acts on boxes of elements."""

import json
from dataclasses import dataclass
from itertools import pairwise

from farm import Session
from site_pages import Site

START_COVER = (120, 145)  # the middle of MiniWoB's START cover in drive.html
READ_BUTTON = (1220, 25)
PATH_STEP = 12  # pixels between two moves of a drag by mouse_down, mouse_move and mouse_up

Point = tuple[float, float]


class SolverError(Exception):
    """The page is not as the solver expects it."""


@dataclass
class Box:
    """An element of the MiniWoB page, in coordinates of the whole page."""

    tag: str
    x: float
    y: float
    width: float
    height: float
    text: str
    value: str | None
    attributes: dict[str, str]
    scroll_top: float
    scroll_max: float

    def at(self, across: float, down: float) -> Point:
        """Returns the point at these shares of the width and height."""
        return self.x + self.width * across, self.y + self.height * down

    @property
    def centre(self) -> Point:
        return self.at(0.5, 0.5)


class State:
    """What the page said at the last read."""

    def __init__(self, fields: dict):
        self.instruction: str = fields["instruction"]
        self.done: bool = fields["done"]
        self.reward: float = fields["reward"]
        self.reason: str | None = fields["reason"]
        self.elements = {
            selector: [Box(**fields) for fields in found] for selector, found in fields["elements"].items()
        }

    def all(self, selector: str) -> list[Box]:
        return self.elements[selector]

    def one(self, selector: str) -> Box:
        found = self.elements[selector]
        if len(found) != 1:
            raise SolverError(f"{len(found)} elements match {selector}, not 1")
        return found[0]


class Episode:
    """An episode that has been started. `variant` counts the ways in which a solver may act."""

    def __init__(self, session: Session, site: Site, task: str, seed: int, selectors: list[str]):
        self.session, self.variant = session, seed
        session.execute("visit_page", url=site.episode_url(task, seed, [*selectors, "#subbtn"]))
        self.click(START_COVER)
        self.start = self.read()
        self.instruction = self.start.instruction

    def read(self) -> State:
        self.click(READ_BUTTON)
        text = self.session.execute("get_webpage_text", n_lines=1000)["text"]
        line = next((line for line in text.splitlines() if line.startswith('{"instruction"')), None)
        if line is None:
            raise SolverError(f"the page shows no state after a click on Read: {text[:200]!r}")
        return State(json.loads(line))

    def click(self, point: Point) -> None:
        self.session.execute("click_coords", x=point[0], y=point[1])

    def hover(self, point: Point) -> None:
        self.session.execute("hover_coords", x=point[0], y=point[1])

    def submit(self) -> None:
        """Clicks Submit. The mouse is moved there first, because a cube under it follows quick moves."""
        button = self.start.one("#subbtn").centre
        self.hover(button)
        self.click(button)

    def keypress(self, keys: str) -> None:
        """Presses a chord such as ctrl+a, sent as one string or as a list of keys in alternation."""
        self.session.execute("keypress", keys=keys if self.variant % 2 else keys.split("+"))

    def drag(self, *corners: Point) -> None:
        """Drags along the corners, with one `drag` command or with mouse_down, mouse_move and mouse_up in alternation."""
        if self.variant % 2:
            self.session.execute("drag", path=[list(point) for point in corners])
            return
        self.press(corners[0])
        for point in spread(corners)[1:]:
            self.session.execute("mouse_move", x=point[0], y=point[1])
        self.let_go(corners[-1])

    def press(self, point: Point) -> None:
        self.session.execute("mouse_down", x=point[0], y=point[1])

    def let_go(self, point: Point) -> None:
        self.session.execute("mouse_up", x=point[0], y=point[1])


def spread(corners: tuple[Point, ...]) -> list[Point]:
    """Returns points on the path that are about PATH_STEP apart."""
    points = [corners[0]]
    for (x0, y0), (x1, y1) in pairwise(corners):
        steps = max(1, round(max(abs(x1 - x0), abs(y1 - y0)) / PATH_STEP))
        points += [(x0 + (x1 - x0) * step / steps, y0 + (y1 - y0) * step / steps) for step in range(1, steps + 1)]
    return points
