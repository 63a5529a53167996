"""Scripted solvers, one per task. Each reads the instruction and the boxes of elements, and acts like a person with a
mouse and a keyboard. `episode.variant` selects between the ways to act, so that all of them are tested."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from cube import solve_cube
from episode import Box, Episode, Point, SolverError


@dataclass
class Task:
    selectors: list[str]  # the elements that `Episode.read` describes, besides #subbtn
    solve: Callable[[Episode], None]


def words_of(pattern: str, instruction: str) -> tuple[str, ...]:
    match = re.search(pattern, instruction)
    if not match:
        raise SolverError(f"the instruction {instruction!r} does not match {pattern}")
    return match.groups()


# Clipboard


def copy_and_paste(episode: Episode, source: str) -> None:
    episode.click(episode.start.one(source).centre)
    episode.keypress("ctrl+a")
    episode.keypress("ctrl+c")
    episode.click(episode.start.one("#answer-input").centre)
    episode.keypress("ctrl+v")
    episode.submit()


def solve_copy_paste(episode: Episode) -> None:
    copy_and_paste(episode, "#to-copy")


def solve_copy_paste_2(episode: Episode) -> None:
    (number,) = words_of(r"the (\d)(?:st|nd|rd) text area", episode.instruction)
    copy_and_paste(episode, f"#text-{number}")


# Text, dates and times


def solve_scroll_text(episode: Episode) -> None:
    area = episode.start.one("#text-area")
    if episode.variant % 2:
        x, y = area.centre
        episode.session.execute("mouse_wheel", x=x, y=y, dy=area.scroll_max + 100)
    else:
        episode.click(area.centre)
        episode.keypress("ctrl+end")
    area = episode.read().one("#text-area")
    if area.scroll_top < area.scroll_max - 3:
        raise SolverError(f"the text area is at {area.scroll_top} of {area.scroll_max} after scrolling to its end")
    last_word = area.value.split()[-1]
    fill(episode, episode.start.one("#answer-input").centre, last_word)
    episode.submit()


def fill(episode: Episode, point: Point, value: str) -> None:
    episode.session.execute("fill_coords", x=point[0], y=point[1], value=value, press_enter=False)


def enter_value(episode: Episode, written: str, keys: str) -> None:
    """Enters a date or time as the instruction writes it, or by the keys of its parts, with fill_coords or type_text."""
    field = episode.start.one("#tt")
    way = episode.variant % 4
    if way in (0, 2):
        fill(episode, field.centre, written)
    elif way == 1:
        fill(episode, field.centre, keys)
    else:
        episode.click(field.at(0.08, 0.5))  # the first part of the field
        episode.session.execute("type_text", text=keys)
    episode.submit()


def solve_enter_date(episode: Episode) -> None:
    (date,) = words_of(r"Enter (\S+) as the date", episode.instruction)
    enter_value(episode, date, date.replace("/", ""))


def solve_enter_time(episode: Episode) -> None:
    written, hour, minute, half = words_of(r"Enter ((\d+):(\d+)\s(AM|PM)) as the time", episode.instruction)
    enter_value(episode, written, f"{int(hour):02}{minute}{half}")


# Boxes and shapes

DIRECTIONS = {"left": (-1, 0), "right": (1, 0), "up": (0, -1), "down": (0, 1)}
DRAG_DISTANCE = 20
# MiniWoB puts the top left corner of a dragged shape at the mouse minus this share of its size.
GRIP = {"rect": 0.5, "circle": 0.6, "polygon": 0.4}
PLURALS = {"rectangles": "rect", "circles": "circle", "triangles": "polygon"}


def moved(point: Point, dx: float, dy: float) -> Point:
    return point[0] + dx, point[1] + dy


def solve_drag_box(episode: Episode) -> None:
    small, large = episode.start.one("#draggableSmall"), episode.start.one("#draggableLarge")
    margin = (large.width - small.width) / 2
    grip = small.centre
    episode.drag(grip, moved(grip, large.x + margin - small.x, large.y + margin - small.y))
    episode.submit()


def solve_drag_in_direction(episode: Episode) -> None:
    (direction,) = words_of(r"Drag the \w+ (\w+) then", episode.instruction)
    (shape,) = (box for tag in GRIP for box in episode.start.all(f"svg {tag}"))
    dx, dy = DIRECTIONS[direction]
    grip = shape.centre
    episode.drag(grip, moved(grip, dx * DRAG_DISTANCE, dy * DRAG_DISTANCE))
    episode.submit()


def drag_shape_into(episode: Episode, shape: Box, container: Box, number: int) -> None:
    """Drags a shape so that its top left corner is inside the container. Shapes are placed side by side."""
    grip = GRIP[shape.tag] * shape.width
    corner = container.at(0.15 + 0.13 * number, 0.3)
    episode.drag(shape.centre, moved(corner, grip, grip))


def shapes_and_containers(episode: Episode) -> tuple[list[Box], list[Box]]:
    boxes = [box for tag in GRIP for box in episode.start.all(f"svg {tag}")]
    is_container = lambda box: box.attributes.get("id") == "shape-container"
    return [box for box in boxes if not is_container(box)], [box for box in boxes if is_container(box)]


def solve_drag_shapes(episode: Episode) -> None:
    (plural,) = words_of(r"Drag all (\w+) into", episode.instruction)
    found, (container,) = shapes_and_containers(episode)
    for number, shape in enumerate(shape for shape in found if shape.tag == PLURALS[plural]):
        drag_shape_into(episode, shape, container, number)
    episode.submit()


def solve_drag_shapes_2(episode: Episode) -> None:
    (kind,) = words_of(r"Drag all (\w+)", episode.instruction)
    found, containers = shapes_and_containers(episode)
    left, right = sorted(containers, key=lambda box: box.x)
    for number, shape in enumerate(found):
        is_chosen = shape.tag == PLURALS[kind] if kind in PLURALS else shape.attributes["fill"] == kind
        drag_shape_into(episode, shape, left if is_chosen else right, number)
    episode.submit()


# Sortable lists. A list puts the dragged item behind another one when the mouse moves forward over its far half, and
# before it when the mouse moves back over its near half.


def drag_in_column(episode: Episode, items: list[Box], source: int, target: int) -> None:
    episode.drag(items[source].centre, items[target].at(0.5, 0.8 if target > source else 0.2))


def target_index(phrase: str, source: int, count: int) -> int:
    """Returns the position, counted from 0, that a phrase of drag-items means."""
    fixed = {"to the top": 0, "to the bottom": count - 1, "down by one position": source + 1}
    fixed["up by one position"] = source - 1
    if phrase in fixed:
        return fixed[phrase]
    (number,) = words_of(r"to the (\d)(?:st|nd|rd|th) position", phrase)
    return int(number) - 1


def solve_drag_items(episode: Episode) -> None:
    name, phrase = words_of(r"Drag (\S+) (.+)\.", episode.instruction)
    items = episode.start.all("#sortable li")
    source = [item.text for item in items].index(name)
    drag_in_column(episode, items, source, target_index(phrase, source, len(items)))


GRID_ROWS = {"top": 0, "center": 1, "bottom": 2}
GRID_COLUMNS = {"left": 0, "center": 1, "right": 2}
GRID_STEPS = {"up": -3, "down": 3, "left": -1, "right": 1}


def grid_index(phrase: str, source: int) -> int:
    """Returns the cell, counted from 0, that a phrase of drag-items-grid means."""
    if phrase.endswith("by one"):
        return source + GRID_STEPS[phrase.split()[0]]
    row, *column = phrase.removeprefix("to the ").split()
    return 3 * GRID_ROWS[row] + GRID_COLUMNS[column[0] if column else "center"]


def solve_drag_items_grid(episode: Episode) -> None:
    """Leaves the grid on one side and enters the row of the target from there, so that only this row is reordered.

    Ends with a vertical move: while the first item is dragged, jQuery UI takes the grid for a column and looks only at
    vertical moves.
    """
    name, phrase = words_of(r"Drag (\S+) (.+)\.", episode.instruction)
    items = episode.start.all("#sortable li")
    source = [item.text for item in items].index(name)
    target = grid_index(phrase, source)
    is_forward = target > source
    outside = items[0].x - 5 if is_forward else items[2].x + items[2].width + 5
    grip = items[source].centre
    share = 0.8 if is_forward else 0.2
    entry, end = items[target].at(share, 0.5), items[target].at(share, share)
    episode.drag(grip, (outside, grip[1]), (outside, entry[1]), entry, end)


def solve_drag_sort_numbers(episode: Episode) -> None:
    for position in range(3):
        items = episode.read().all("#sortable li") if position else episode.start.all("#sortable li")
        numbers = [int(item.text) for item in items]
        source = numbers.index(min(numbers[position:]), position)
        if source != position:
            drag_in_column(episode, items, source, position)
    episode.submit()


# Sliders


@dataclass
class Slider:
    """A slider, its handle and the element that shows its value."""

    track: str
    handle: str
    value: str


def slider_value(episode: Episode, slider: Slider) -> int:
    return int(episode.read().one(slider.value).text)


def drag_slider(episode: Episode, slider: Slider, goal: int, low: int, high: int) -> None:
    """Drags the handle. Where a pixel is more than a value, the rest is done by arrow keys, as a person would."""
    state = episode.read()
    track, handle = state.one(slider.track), state.one(slider.handle)
    difference = goal - int(state.one(slider.value).text)
    if difference == 0:
        return
    if "ui-slider-vertical" in track.attributes["class"]:
        shift = (0, -difference * track.height / (high - low))
    else:
        shift = (difference * track.width / (high - low), 0)
    episode.drag(handle.centre, moved(handle.centre, *shift))
    press_arrows(episode, goal - slider_value(episode, slider))


def press_arrows(episode: Episode, difference: int) -> None:
    """Presses an arrow key for each unit. The handle has the focus."""
    for _ in range(abs(difference)):
        episode.session.execute("keypress", keys=["arrowright" if difference > 0 else "arrowleft"])


def key_slider(episode: Episode, slider: Slider, goal: int, low: int, high: int) -> None:
    """Moves the handle by keys: to the nearer end if that is closer, then by pages of a fifth, then by arrows."""
    handle = episode.read().one(slider.handle).centre
    episode.hover(handle)
    episode.click(handle)
    value = slider_value(episode, slider)
    ends = {"home": low, "end": high}
    end = min(ends, key=lambda key: abs(goal - ends[key]))
    if abs(goal - ends[end]) < abs(goal - value):
        episode.session.execute("keypress", keys=[end])
        value = ends[end]
    page = (high - low) // 5
    while abs(goal - value) >= page > 1:
        direction = 1 if goal > value else -1
        episode.session.execute("keypress", keys=["pageup" if direction > 0 else "pagedown"])
        value += direction * page
    press_arrows(episode, goal - value)


def set_slider(episode: Episode, slider: Slider, goal: int, low: int, high: int) -> None:
    """Sets a slider by the mouse or by keys, in alternation."""
    move = drag_slider if is_by_mouse(episode) else key_slider
    move(episode, slider, goal, low, high)
    value = slider_value(episode, slider)
    if value != goal:
        raise SolverError(f"the slider {slider.track} is at {value}, not {goal}")


def is_by_mouse(episode: Episode) -> bool:
    """Seeds 0 and 1 of four use the mouse, one in each way of `Episode.drag`; 2 and 3 use keys."""
    return episode.variant % 4 < 2


def slider_range(episode: Episode, slider: Slider) -> tuple[int, int]:
    """Moves the handle to both ends and reads the range there, because the page does not show it."""
    ends = []
    for key, share in [("home", 0), ("end", 1)]:
        state = episode.read()
        track, handle = state.one(slider.track), state.one(slider.handle).centre
        if is_by_mouse(episode):
            is_vertical = "ui-slider-vertical" in track.attributes["class"]
            episode.drag(handle, track.at(0.5, 1 - share) if is_vertical else track.at(share, 0.5))
        else:
            episode.hover(handle)
            episode.click(handle)
            episode.session.execute("keypress", keys=[key])
        ends.append(slider_value(episode, slider))
    return ends[0], ends[1]


def solve_use_slider(episode: Episode) -> None:
    (goal,) = words_of(r"Select (-?\d+) with", episode.instruction)
    slider = Slider("#slider", "#slider .ui-slider-handle", "#val")
    set_slider(episode, slider, int(goal), *slider_range(episode, slider))
    episode.submit()


def solve_use_slider_2(episode: Episode) -> None:
    goals = words_of(r"\[(\d+),(\d+),(\d+)\]", episode.instruction)
    for number, goal in enumerate(goals, 1):
        slider = Slider(f"#slider-{number}", f"#slider-{number} .ui-slider-handle", f"#val-{number}")
        set_slider(episode, slider, int(goal), 0, 20)
    episode.submit()


SHAPES = ["svg rect", "svg circle", "svg polygon"]
LIST = ["#sortable li"]
SLIDERS_2 = [
    selector
    for number in (1, 2, 3)
    for selector in (f"#slider-{number}", f"#slider-{number} .ui-slider-handle", f"#val-{number}")
]

TASKS = {
    "copy-paste": Task(["#to-copy", "#answer-input"], solve_copy_paste),
    "copy-paste-2": Task(["#text-1", "#text-2", "#text-3", "#answer-input"], solve_copy_paste_2),
    "scroll-text": Task(["#text-area", "#answer-input"], solve_scroll_text),
    "enter-date": Task(["#tt"], solve_enter_date),
    "enter-time": Task(["#tt"], solve_enter_time),
    "drag-box": Task(["#draggableSmall", "#draggableLarge"], solve_drag_box),
    "drag-circle": Task(SHAPES, solve_drag_in_direction),
    "drag-cube": Task([".cube", ".active"], solve_cube),
    "drag-items": Task(LIST, solve_drag_items),
    "drag-items-grid": Task(LIST, solve_drag_items_grid),
    "drag-shapes": Task(SHAPES, solve_drag_shapes),
    "drag-shapes-2": Task(SHAPES, solve_drag_shapes_2),
    "drag-single-shape": Task(SHAPES, solve_drag_in_direction),
    "drag-sort-numbers": Task(LIST, solve_drag_sort_numbers),
    "use-slider": Task(["#slider", "#slider .ui-slider-handle", "#val"], solve_use_slider),
    "use-slider-2": Task(SLIDERS_2, solve_use_slider_2),
}
