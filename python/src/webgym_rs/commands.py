"""Builds the commands of a browser session: `click(id=3)`, `fill("text", x=10, y=20)`, `press("ctrl+a")`.

A target is an element id of the last screenshot with marks (`id`), or a point in CSS pixels (`x` and `y`).
docs/contract.md describes every command of the farm; `command` builds any of them by name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

ElementId: TypeAlias = int | str
Direction: TypeAlias = Literal["up", "down", "left", "right"]
Button: TypeAlias = Literal["left", "middle", "right"]


@dataclass(frozen=True)
class Command:
    """A command and its arguments, as the farm names them."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def to_json(self) -> dict[str, dict[str, Any]]:
        return {self.name: dict(self.arguments)}


CommandLike: TypeAlias = Command | Mapping[str, Mapping[str, Any]]


def to_json(value: CommandLike) -> Mapping[str, Mapping[str, Any]]:
    """Returns the wire form of a command, or of a mapping that has it already."""
    return value.to_json() if isinstance(value, Command) else value


def command(name: str, **arguments: Any) -> Command:
    """Builds any command of the farm by its name. Arguments that are None are left out."""
    return Command(name, {key: value for key, value in arguments.items() if value is not None})


def _targeted(
    stem: str, id: ElementId | None, x: float | None, y: float | None, required: bool = True, **others: Any
) -> Command:
    """Returns `<stem>_id` or `<stem>_coords`; without a target, if that is allowed, `stem`."""
    if id is not None and x is None and y is None:
        return command(f"{stem}_id", id=str(id), **others)
    if id is None and x is not None and y is not None:
        return command(f"{stem}_coords", x=x, y=y, **others)
    if id is None and x is None and y is None and not required:
        return command(stem, **others)
    raise ValueError(f"{stem} needs either id, or x and y; it got id={id!r}, x={x!r}, y={y!r}")


def visit(url: str) -> Command:
    """Opens a page and waits until it has loaded."""
    return command("visit_page", url=url)


def back() -> Command:
    """Goes back in the history."""
    return command("back")


def forward() -> Command:
    """Goes forward in the history."""
    return command("forward")


def click(id: ElementId | None = None, *, x: float | None = None, y: float | None = None) -> Command:
    """Clicks an element or a point."""
    return _targeted("click", id, x, y)


def fill(
    value: str,
    id: ElementId | None = None,
    *,
    x: float | None = None,
    y: float | None = None,
    press_enter: bool = True,
    delete_existing: bool = False,
) -> Command:
    """Clicks a field and types into it; then presses Enter, unless `press_enter` is false."""
    return _targeted("fill", id, x, y, value=value, press_enter=press_enter, delete_existing=delete_existing)


def select(id: ElementId) -> Command:
    """Selects an option."""
    return command("select_option", id=str(id))


def hover(id: ElementId | None = None, *, x: float | None = None, y: float | None = None) -> Command:
    """Moves the mouse over an element or a point."""
    return _targeted("hover", id, x, y)


def scroll(direction: Direction, id: ElementId | None = None, *, x: float | None = None, y: float | None = None) -> Command:
    """Scrolls an element by its own size, or turns the wheel at a point."""
    return _targeted("scroll", id, x, y, direction=direction)


def hover_and_scroll(x: float, y: float, direction: Direction = "down") -> Command:
    """Moves the mouse to a point and scrolls what can be scrolled there."""
    return command("hover_and_scroll_coords", x=x, y=y, direction=direction)


def page_down(amount: float | None = None, *, full_page: bool | None = None) -> Command:
    """Scrolls the page down by `amount` pixels, or by the height of the viewport."""
    return command("page_down", amount=amount, full_page=full_page)


def page_up(amount: float | None = None, *, full_page: bool | None = None) -> Command:
    """Scrolls the page up by `amount` pixels, or by the height of the viewport."""
    return command("page_up", amount=amount, full_page=full_page)


def press(*keys: str) -> Command:
    """Presses keys together: `press("ctrl", "a")`, or as a chord, `press("ctrl+a")`."""
    return command("keypress", keys=keys[0] if len(keys) == 1 else list(keys))


def type_text(text: str) -> Command:
    """Types into the element that has the focus."""
    return command("type_text", text=text)


def key_down(key: str) -> Command:
    """Presses a key, which stays pressed."""
    return command("key_down", key=key)


def key_up(key: str) -> Command:
    """Releases a key."""
    return command("key_up", key=key)


def tab_and_enter() -> Command:
    """Presses Tab, then Enter."""
    return command("tab_and_enter")


def mouse_click(
    x: float, y: float, *, button: Button = "left", clicks: int = 1, keys: Sequence[str] | None = None
) -> Command:
    """Clicks a point with any button, up to three times, with modifier keys held."""
    return command("mouse_click", x=x, y=y, button=button, clicks=clicks, keys=list(keys) if keys else None)


def mouse_down(x: float, y: float, *, button: Button = "left") -> Command:
    """Presses a mouse button, which stays pressed."""
    return command("mouse_down", x=x, y=y, button=button)


def mouse_move(x: float, y: float) -> Command:
    """Moves the mouse."""
    return command("mouse_move", x=x, y=y)


def mouse_up(x: float, y: float, *, button: Button = "left") -> Command:
    """Releases a mouse button."""
    return command("mouse_up", x=x, y=y, button=button)


def wheel(x: float, y: float, *, dx: float = 0, dy: float = 0, keys: Sequence[str] | None = None) -> Command:
    """Turns the wheel at a point; positive is right and down."""
    return command("mouse_wheel", x=x, y=y, dx=dx, dy=dy, keys=list(keys) if keys else None)


def drag(path: Sequence[tuple[float, float]], *, button: Button = "left", keys: Sequence[str] | None = None) -> Command:
    """Drags along a path of points."""
    points = [[x, y] for x, y in path]
    return command("drag", path=points, button=button, keys=list(keys) if keys else None)


def set_files(
    files: Sequence[str], id: ElementId | None = None, *, x: float | None = None, y: float | None = None
) -> Command:
    """Chooses uploaded files in the file chooser that a click on the target opens, or in the open one."""
    element = None if id is None else str(id)
    return command("set_files", files=list(files), id=element, x=x, y=y)


def wait(seconds: float) -> Command:
    """Waits."""
    return command("sleep", duration=seconds)


def open_tab(url: str | None = None) -> Command:
    """Opens a tab. Only for sessions with `tabs="many"`."""
    return command("open_tab", url=url)


def switch_tab(id: ElementId) -> Command:
    """Makes a tab the current one."""
    return command("switch_tab", id=str(id))


def close_tab(id: ElementId | None = None) -> Command:
    """Closes a tab, by default the current one."""
    return command("close_tab", id=None if id is None else str(id))
