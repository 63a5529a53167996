"""A vector environment: N sessions that step concurrently over one pool of connections."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from typing import Any

import numpy
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array, iterate

from .._episodes.actions import parse_action
from .._episodes.engine import Engine
from .._episodes.episode import Episode, Result
from .._episodes.tasks import Task
from ._env import choose_task
from ._spaces import observation_space, structured_action_space

Floats = numpy.ndarray[Any, numpy.dtype[numpy.float64]]
Flags = numpy.ndarray[Any, numpy.dtype[numpy.bool_]]


class TaskVectorEnv(VectorEnv[dict[str, Any], Any, Any]):
    """N tasks at a time. Like `TaskEnv`, but a session that cannot be acquired is a lost episode instead of an error."""

    def __init__(self, num_envs: int = 1, *, autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP, **settings: Any):
        self.num_envs = num_envs
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.metadata = {"render_modes": [], "autoreset_mode": self.autoreset_mode}
        self._engine = Engine(num_envs, **settings)
        self._finaliser = weakref.finalize(self, self._engine.abandon)
        self._finaliser.atexit = False
        used = self._engine.settings
        self._space = observation_space(used.size, used.screenshot)
        self.single_observation_space = self._space
        self.single_action_space = structured_action_space()
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self._action_space: Any = batch_space(self.single_action_space, num_envs)
        self.action_space = self._action_space
        self._generators = self._new_generators(None)
        self._results: list[Result | None] = [None] * num_envs

    def _new_generators(self, seed: int | Sequence[int | None] | None) -> list[numpy.random.Generator]:
        seeds = [seed] * self.num_envs if seed is None else seed
        if isinstance(seeds, int):
            seeds = [seeds + number for number in range(self.num_envs)]
        if len(seeds) != self.num_envs:
            raise ValueError(f"there are {len(seeds)} seeds for {self.num_envs} environments")
        return [numpy.random.default_rng(one) for one in seeds]

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Starts new episodes: all, or those that the boolean array `options["reset_mask"]` names."""
        if seed is not None:
            self._generators = self._new_generators(seed)
        mask: Any = (options or {}).get("reset_mask")
        numbers = range(self.num_envs)
        chosen = numbers if mask is None else [number for number in numbers if mask[number]]
        if any(self._results[number] is None for number in numbers if number not in chosen):
            raise ValueError("the first reset must be of all environments; leave out reset_mask")
        tasks = {number: self._choose(number, options) for number in chosen}
        started = self._engine.run_all([self._episode(number).reset_or_lose(task) for number, task in tasks.items()])
        infos: dict[str, Any] = {}
        for number, result in zip(tasks, started, strict=True):
            # A lost episode is truncated by its first step.
            self._results[number] = Result(result.observation, result.info)
            infos = self._add_info(infos, result.info, number)
        return self._observations(), infos

    def _choose(self, number: int, options: dict[str, Any] | None = None) -> Task:
        return choose_task(self._engine.tasks, self._generators[number], options)

    def _episode(self, number: int) -> Episode:
        return self._engine.episodes[number]

    def step(self, actions: Any) -> tuple[dict[str, Any], Floats, Flags, Flags, dict[str, Any]]:
        """Takes a batch of structured actions, or a sequence of N commands, answers or texts of tool calls."""
        if any(result is None for result in self._results):
            raise RuntimeError("call reset before step")
        is_batch = not isinstance(actions, (list, tuple))
        singles: list[Any] = [*self._unbatch(actions)] if is_batch else [*actions]
        if len(singles) != self.num_envs:
            raise ValueError(f"there are {len(singles)} actions for {self.num_envs} environments")
        # Before any session acts, so that a wrong action has no effects.
        singles = [self._parsed(number, action) for number, action in enumerate(singles)]
        infos: dict[str, Any] = {}
        stepped = self._engine.run_all([self._advance(number, action) for number, action in enumerate(singles)])
        for number, (result, final) in enumerate(stepped):
            self._results[number] = result
            if final is not None:
                infos = self._add_info(infos, {"final_obs": final.observation, "final_info": final.info}, number)
            infos = self._add_info(infos, result.info, number)
        done = [final or result for result, final in stepped]
        rewards = numpy.array([result.reward for result in done], dtype=numpy.float64)
        terminated = numpy.array([result.terminated for result in done], dtype=numpy.bool_)
        truncated = numpy.array([result.truncated for result in done], dtype=numpy.bool_)
        return self._observations(), rewards, terminated, truncated, infos

    def _unbatch(self, actions: Any) -> Iterator[Any]:
        return iterate(self._action_space, actions)

    def _has_ended(self, number: int) -> bool:
        previous = self._results[number]
        return previous is not None and (previous.terminated or previous.truncated)

    def _parsed(self, number: int, action: Any) -> Any:
        """Returns the action as its session takes it. The action of an environment that is reset does not matter."""
        if not self._has_ended(number):
            return parse_action(action, self._engine.settings.size)
        if self.autoreset_mode is AutoresetMode.DISABLED:
            raise RuntimeError(f"the episode of environment {number} has ended; reset it with options['reset_mask']")
        return None

    async def _advance(self, number: int, action: Any) -> tuple[Result, Result | None]:
        """Steps one environment by its autoreset mode. Returns what it shows and, if it was reset, its final result."""
        if self._has_ended(number):
            return await self._restart(number), None
        result = await self._episode(number).step(action)
        if self.autoreset_mode is AutoresetMode.SAME_STEP and (result.terminated or result.truncated):
            return await self._restart(number), result
        return result, None

    async def _restart(self, number: int) -> Result:
        result = await self._episode(number).reset_or_lose(self._choose(number))
        return Result(result.observation, result.info)

    def _observations(self) -> dict[str, Any]:
        shown = [result.observation for result in self._results if result is not None]
        batch: Any = concatenate(self._space, shown, create_empty_array(self._space, self.num_envs))
        return batch

    def close_extras(self, **kwargs: Any) -> None:
        """Releases the sessions; a farm that the environment started is stopped."""
        self._engine.close()
