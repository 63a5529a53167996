"""One episode at a time on a leased session. It runs on the event loop of its engine."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .. import aio, commands
from .._calls import Include, InteractionMode
from ..commands import CommandLike
from ..errors import BadRequest, InfrastructureError, ReplayMiss
from ..observations import Observation, Screenshot
from .actions import Answer, ScreenshotMode, blank, decode, parse_action, texts_of
from .judge import Ended, Reward
from .tasks import Task


@dataclass(frozen=True)
class Settings:
    """What the episodes of an environment have in common."""

    reward: Reward
    max_steps: int
    size: tuple[int, int]
    screenshot: ScreenshotMode
    interaction_mode: InteractionMode
    dialect: str
    session: Mapping[str, Any]
    attempts: int
    wait: float


@dataclass
class Result:
    """What `reset` and `step` of an environment return."""

    observation: dict[str, Any]
    info: dict[str, Any]
    reward: float = 0.0
    terminated: bool = False
    truncated: bool = False


@dataclass
class Episode:
    """The current episode of one environment."""

    farm: aio.Farm
    settings: Settings
    session: aio.Session | None = None
    task: Task | None = None
    _actions: list[CommandLike | str] = field(default_factory=list[CommandLike | str])
    _last: Observation | None = None
    _has_ended: bool = False

    async def reset(self, task: Task) -> Result:
        """Starts an episode on a clean session. Lost infrastructure is tried again, and then raised."""
        await self.close()
        self.task, self._actions, self._has_ended = task, [], False
        for attempt in range(self.settings.attempts):
            try:
                options: Any = self.settings.session
                self.session = await self.farm.lease(wait=self.settings.wait, **options)
                return await self._result(await self._step(commands.visit(task.url)))
            except InfrastructureError as error:
                await self.close()
                # Another session would find the archive as incomplete.
                if isinstance(error, ReplayMiss) or attempt + 1 == self.settings.attempts:
                    raise
        raise ValueError(f"attempts is {self.settings.attempts}; it must be at least 1")

    async def reset_or_lose(self, task: Task) -> Result:
        """Like `reset`; but if the infrastructure is lost, the episode is truncated by its first step."""
        try:
            return await self.reset(task)
        except InfrastructureError as error:
            return self._lost(error)

    async def step(self, action: Any) -> Result:
        if self.task is None:
            raise RuntimeError("call reset before step")
        if self._has_ended:
            raise RuntimeError("the episode has ended; call reset before step")
        if self.session is None:
            return await self._lose(InfrastructureError("there is no session; the episode was lost"))
        parsed = parse_action(action, self.settings.size)
        self._actions.append(parsed)
        try:
            if isinstance(parsed, Answer):
                return await self._end(parsed)
            if isinstance(parsed, str):
                return await self._run_text(parsed)
            observation = await self._step(parsed)
        except InfrastructureError as error:
            return await self._lose(error)
        return await self._after(observation)

    async def _step(self, command: CommandLike) -> Observation:
        assert self.session is not None
        mode = self.settings.interaction_mode
        return await self.session.step(command, include=self._include, interaction_mode=mode)

    @property
    def _include(self) -> list[Include]:
        parts: list[Include] = ["metadata", "ac_tree"]
        return parts if self.settings.screenshot == "none" else [*parts, "screenshot"]

    async def _run_text(self, text: str) -> Result:
        """Carries out the text of a tool call, in the dialect of the environment."""
        assert self.session is not None
        try:
            turn = await self.session.computer(self.settings.dialect, text)
        except BadRequest as error:
            # The model's text has no action that can be understood: its mistake, not the program's.
            return await self._after(await self._observe(), error.detail)
        observation = await self._observe()
        if turn.finished is not None:
            self._last = observation
            return await self._end(str(turn.finished["answer"]))
        if isinstance(turn.error, InfrastructureError):
            raise turn.error
        return await self._after(observation, turn.error.detail if turn.error else "")

    async def _observe(self) -> Observation:
        assert self.session is not None
        return await self.session.observe(include=self._include, interaction_mode=self.settings.interaction_mode)

    async def _after(self, observation: Observation, error: str = "") -> Result:
        """Returns the result of a step, and ends the episode at the step limit."""
        result = await self._result(observation, error)
        if len(self._actions) >= self.settings.max_steps:
            result.truncated = True
            result.reward = await self._judge(None)
            await self._finish()
        return result

    async def _end(self, answer: str) -> Result:
        assert self._last is not None
        result = await self._result(self._last)
        result.terminated, result.reward = True, await self._judge(answer)
        result.info["answer"] = str(answer)
        await self._finish()
        return result

    async def give_up(self) -> float:
        """Ends an episode whose agent stopped without an answer, and returns its reward."""
        reward = await self._judge(None)
        await self.close()
        return reward

    async def page_text(self, lines: int) -> str:
        """Returns the first lines of the page's text. Lost infrastructure is raised."""
        return await self.session.text(lines) if self.session and lines else ""

    async def _judge(self, answer: str | None) -> float:
        assert self.task is not None
        assert self._last is not None
        ended = Ended(self.task, answer, tuple(self._actions), self._last)
        return float(await asyncio.to_thread(self.settings.reward, ended))

    async def _result(self, observation: Observation, error: str = "") -> Result:
        assert self.task is not None
        self._last = observation
        shown = texts_of(observation, self.task.goal)
        if observation.screenshot is not None:
            shown["screenshot"] = await self._image(observation.screenshot)
        detail = observation.error.detail if observation.error else error
        return Result(shown, self._info(detail, title=observation.title or ""))

    async def _image(self, screenshot: Screenshot) -> Any:
        if self.settings.screenshot == "lazy":
            return screenshot
        # Pillow decodes without the interpreter's lock, so other sessions go on meanwhile.
        return await asyncio.to_thread(decode, screenshot)

    def _info(self, error: str, title: str = "", lost: bool = False) -> dict[str, Any]:
        assert self.task is not None
        return {"task_id": self.task.id, "title": title, "error": error, "infra_lost": lost, "mask": not lost}

    def _lost(self, error: InfrastructureError) -> Result:
        """The episode says nothing about the agent: its reward is not a number, and it is masked."""
        assert self.task is not None
        observation: dict[str, Any] = {"ac_tree": "", "url": "", "goal": self.task.goal}
        width, height = self.settings.size
        if self.settings.screenshot == "array":
            observation["screenshot"] = blank(width, height)
        elif self.settings.screenshot == "lazy":
            observation["screenshot"] = Screenshot("png", width, height, b"")
        return Result(observation, self._info(error.detail, lost=True), math.nan, False, True)

    async def _lose(self, error: InfrastructureError) -> Result:
        await self._finish()
        return self._lost(error)

    async def _finish(self) -> None:
        """Ends the episode. After an error of the reward it goes on instead, so that it can be judged again."""
        self._has_ended = True
        await self.close()

    async def close(self) -> None:
        """Releases the session."""
        session, self.session = self.session, None
        if session is not None:
            await session.release()
