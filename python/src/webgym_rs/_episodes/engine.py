"""The event loop, farm and settings that an environment's episodes share."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, Literal, TypeVar

from .. import aio
from .._calls import InteractionMode
from .actions import ScreenshotMode
from .episode import Episode, Settings
from .judge import ReferenceJudge, Reward, reward_of
from .tasks import Task, Tasks, load_tasks

T = TypeVar("T")
DEFAULT_SIZE = (1280, 768)


class Engine:
    """Runs episodes concurrently on a thread of its own, over one pool of connections."""

    def __init__(
        self,
        instances: int,
        *,
        tasks: Tasks,
        farm: str | None = None,
        api_key: str | None = None,
        arguments: Sequence[str] = (),
        reward: Reward | Literal["reference"] = "reference",
        max_steps: int = 30,
        screenshot: ScreenshotMode = "array",
        interaction_mode: InteractionMode = "set_of_marks",
        dialect: str = "qwen",
        session: Mapping[str, Any] | None = None,
        attempts: int = 3,
        wait: float = 60.0,
    ):
        self.tasks = load_tasks(tasks)
        self._by_id = {task.id: task for task in self.tasks}
        options = dict(session or {})
        viewport = options.get("viewport") or {"width": DEFAULT_SIZE[0], "height": DEFAULT_SIZE[1]}
        size = (viewport["width"], viewport["height"])
        judge = reward_of(reward, self.tasks)
        self.settings = Settings(judge, max_steps, size, screenshot, interaction_mode, dialect, options, attempts, wait)
        self._farm = aio.Farm(farm, api_key=api_key) if farm else aio.serve(instances, arguments=arguments)
        self.episodes = [self.new_episode() for _ in range(instances)]
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="webgym-episodes", daemon=True)
        self._thread.start()

    def new_episode(self) -> Episode:
        """Returns an episode that is not started. Its lease ends with the engine at the latest."""
        return Episode(self._farm, self.settings)

    def task(self, id: str) -> Task:
        """Returns the task with an id."""
        if id not in self._by_id:
            raise ValueError(f"there is no task with the id {id!r}; the first of {len(self.tasks)} is {self.tasks[0].id!r}")
        return self._by_id[id]

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine on the loop and waits for it. An interrupt cancels it."""
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    async def call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine on the loop of the engine, for a caller on another loop."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(coroutine, self._loop))

    def run_all(self, coroutines: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
        """Runs coroutines concurrently. Waits for all of them, then raises the first error."""

        async def gather() -> list[T | BaseException]:
            return await asyncio.gather(*coroutines, return_exceptions=True)

        results = self.run(gather())
        for result in results:
            if isinstance(result, BaseException):
                raise result
        return [result for result in results if not isinstance(result, BaseException)]

    def close(self) -> None:
        """Releases the sessions and ends what was started. Can be called repeatedly."""
        if not self._thread.is_alive():
            return
        self.run(self._close())
        self._stop_loop()
        self._loop.close()

    async def _close(self) -> None:
        await asyncio.gather(*(episode.close() for episode in self.episodes))
        await self._farm.close()
        if isinstance(self.settings.reward, ReferenceJudge):
            await asyncio.to_thread(self.settings.reward.close)
        await self._loop.shutdown_default_executor()

    def _stop_loop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def abandon(self) -> None:
        """For an environment that was not closed: ends the loop. Sessions and farm end by their own finalisers."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
        self.episodes.clear()


_shared: dict[str, Engine] = {}
_lock = threading.Lock()


def shared_engine(settings: Mapping[str, Any]) -> Engine:
    """Returns the engine of this process for these settings, for trainers that make an object for each episode.

    `instances` (8) is the size of the farm that is started if there is no `farm`.
    """
    key = repr(sorted(settings.items(), key=lambda item: item[0]))
    with _lock:
        if key not in _shared:
            others: dict[str, Any] = {"instances": 8, "screenshot": "none", **settings}
            _shared[key] = Engine(**others)
        return _shared[key]
