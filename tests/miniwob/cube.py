"""The solver of drag-cube. The cube turns while and after the mouse moves with a pressed button, by an amount that depends
on the timing of the page. So the solver turns it, reads where it is, and repeats that until the right side is in front."""

import re

from episode import Episode, SolverError, State

MAX_TURNS = 15
MAX_MOVE = 60  # pixels
# Degrees per pixel: the cube stops soon while the button stays pressed, and turns on when it is released.
DEGREES_PER_PIXEL_HELD = 1.2
DEGREES_PER_PIXEL_RELEASED = 2.0
MIDDLE = (120, 145)

# The middle of the angles (rotateX, rotateY) at which the page regards a side as active. Other sides than 1 and 6 are
# reached upside down, which is near the first position of the cube (136, 42).
FRONT = {1: (264, None), 6: (88, None), 3: (180, 86), 2: (180, 177), 5: (180, 269), 4: (180, 358)}


def angles(state: State) -> tuple[float, float]:
    style = state.one(".cube").attributes.get("style", "rotateX(136deg) rotateY(1122deg)")
    return tuple(float(angle) % 360 for angle in re.findall(r"rotate[XY]\((-?[\d.e+-]+)deg\)", style))


def shortest(difference: float) -> float:
    """Returns the turn of at most 180 degrees that makes the difference."""
    return (difference + 180) % 360 - 180


def limited(pixels: float) -> float:
    return max(-MAX_MOVE, min(MAX_MOVE, pixels))


def turn(episode: Episode, dx: float, dy: float) -> None:
    end = MIDDLE[0] + dx, MIDDLE[1] + dy
    episode.hover(MIDDLE)  # a jump of the mouse just before the button is pressed would turn the cube too
    episode.drag(MIDDLE, end)


def solve_cube(episode: Episode) -> None:
    (side,) = re.search(r'"(\d)"', episode.instruction).groups()
    gain = DEGREES_PER_PIXEL_RELEASED if episode.variant % 2 else DEGREES_PER_PIXEL_HELD
    goal_x, goal_y = FRONT[int(side)]
    state = episode.start
    for _ in range(MAX_TURNS):
        if state.one(".active").text == side:
            episode.submit()
            return
        angle_x, angle_y = angles(state)
        up = limited(shortest(goal_x - angle_x) / gain)
        is_upright = not 90 < angle_x < 270
        across = 0 if goal_y is None else limited(shortest(goal_y - angle_y) / gain)
        turn(episode, across if is_upright else -across, -up)
        state = episode.read()
    raise SolverError(f"the cube shows {state.one('.active').text}, not {side}, after {MAX_TURNS} turns")
