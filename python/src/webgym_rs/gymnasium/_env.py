"""`webgym_rs/Task-v0`: one browser session."""

from __future__ import annotations

import weakref
from typing import Any

import gymnasium
import numpy

from .._episodes.engine import Engine
from .._episodes.episode import Result
from .._episodes.tasks import Task
from ._spaces import observation_space, structured_action_space


def choose_task(tasks: list[Task], random: numpy.random.Generator, options: dict[str, Any] | None) -> Task:
    """Returns the task that the options name by its id, or a random one."""
    wanted = (options or {}).get("task_id")
    if wanted is None:
        return tasks[int(random.integers(len(tasks)))]
    for task in tasks:
        if task.id == str(wanted):
            return task
    raise ValueError(f"there is no task with the id {wanted!r}; the first is {tasks[0].id!r}")


class TaskEnv(gymnasium.Env[dict[str, Any], Any]):
    """Tasks of a task file, one episode after the other, each on a clean session.

    docs/python.md describes the arguments, observations and actions. An episode that is lost to the infrastructure is
    truncated, its reward is NaN, and `info["infra_lost"]` is true.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 1}  # noqa: RUF012

    def __init__(self, *, render_mode: str | None = None, **settings: Any):
        self.render_mode = render_mode
        self._engine = Engine(1, **settings)
        self._finaliser = weakref.finalize(self, self._engine.abandon)
        self._finaliser.atexit = False
        used = self._engine.settings
        self.observation_space = observation_space(used.size, used.screenshot)
        self.action_space = structured_action_space()
        self._frame: Any = None

    @property
    def session_id(self) -> str | None:
        """The id of the lease, to find it in the farm's audit log; None between episodes."""
        session = self._engine.episodes[0].session
        return session.id if session else None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Starts an episode with a random task, or the one that `options["task_id"]` names."""
        super().reset(seed=seed)
        task = choose_task(self._engine.tasks, self.np_random, options)
        result = self._engine.run(self._engine.episodes[0].reset(task))
        return self._shown(result), result.info

    def step(self, action: Any) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """Takes a structured action, a command such as `wg.click(id=1)`, an `Answer`, or the text of a tool call."""
        result = self._engine.run(self._engine.episodes[0].step(action))
        return self._shown(result), result.reward, result.terminated, result.truncated, result.info

    def _shown(self, result: Result) -> dict[str, Any]:
        self._frame = result.observation.get("screenshot")
        return result.observation

    def render(self) -> Any:
        """Returns the last screenshot."""
        return getattr(self._frame, "array", self._frame)

    def close(self) -> None:
        """Releases the session; a farm that the environment started is stopped."""
        self._engine.close()
