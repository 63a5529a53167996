"""Browser tasks for TRL's GRPOTrainer, in two forms; docs/trainers.md compares them.

    web = WebTasks(tasks="tasks.jsonl", farm="http://host:7000")
    GRPOTrainer(model, train_dataset=web.dataset(), environment_factory=web.environment, args=…)
    GRPOTrainer(model, train_dataset=web.dataset(), rollout_func=web.rollout, reward_funcs=web.reward, args=…)

An attempt that is lost to the infrastructure has the reward None: TRL leaves it out of the baseline of its group and sets
its advantage to 0. `rollout` tries it again before that, and masks its tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from ._episodes.conversation import Conversation, prompt_of
from ._episodes.engine import Engine
from ._episodes.tasks import Task
from ._trl_rollout import Attempt, RolloutTrainer, generate_turn
from .errors import InfrastructureError

if TYPE_CHECKING:
    from datasets import Dataset

__all__ = ["WebEnvironment", "WebTasks"]


class WebEnvironment:
    """The environment of one rollout. Its public methods are the tools of the model."""

    def __init__(self, engine: Engine, page_text_lines: int = 40):
        self._engine = engine
        self._conversation = Conversation(engine, page_text_lines)

    def reset(self, task_id: str, **row: Any) -> str | list[dict[str, Any]]:
        """Starts the task of a row of the dataset on a clean session."""
        text = self._engine.run(self._conversation.start(self._engine.task(str(task_id))))
        return self._content(text)

    def get_reward(self) -> float | None:
        """Returns the reward; None if the episode was lost to the infrastructure."""
        self._engine.run(self._conversation.finish())
        return self._conversation.reward

    def click(self, element: int) -> str | list[dict[str, Any]]:
        """
        Click an element.

        Args:
            element: The number of the element in the list of elements.
        """
        return self._call("click", element=element)

    def type_text(self, element: int, text: str) -> str | list[dict[str, Any]]:
        """
        Replace the content of a field and press Enter.

        Args:
            element: The number of the element in the list of elements.
            text: The new content.
        """
        return self._call("type_text", element=element, text=text)

    def scroll(self, direction: str) -> str | list[dict[str, Any]]:
        """
        Scroll the page by one screen.

        Args:
            direction: Either up or down.
        """
        return self._call("scroll", direction=direction)

    def go_back(self) -> str | list[dict[str, Any]]:
        """
        Go back to the previous page.
        """
        return self._call("go_back")

    def goto(self, url: str) -> str | list[dict[str, Any]]:
        """
        Open a page.

        Args:
            url: The address of the page.
        """
        return self._call("goto", url=url)

    def answer(self, text: str) -> str | list[dict[str, Any]]:
        """
        Give the final answer, which ends the task.

        Args:
            text: The answer.
        """
        return self._call("answer", text=text)

    def _call(self, name: str, **arguments: Any) -> str | list[dict[str, Any]]:
        return self._content(self._engine.run(self._conversation.call(name, arguments)))

    def _content(self, text: str) -> str | list[dict[str, Any]]:
        """Returns the text or, if the engine takes screenshots, the content blocks of a multimodal message."""
        image = self._conversation.image
        return text if image is None else [{"type": "image", "image": image}, {"type": "text", "text": text}]


class WebTasks:
    """The tasks of a task file on the sessions of a farm.

    `instances` is the size of the farm that is started if `farm` is None. `page_text_lines` is how much of a page's text a
    model sees, `attempts` how often `rollout` tries an attempt that was lost. The other arguments are those of the
    Gymnasium environment (docs/python.md), with `screenshot="lazy"` for models that see images.
    """

    def __init__(self, *, instances: int = 8, page_text_lines: int = 40, attempts: int = 3, **settings: Any):
        settings.setdefault("screenshot", "none")
        self.engine = Engine(instances, **settings)
        self._lines = page_text_lines
        self._attempts = attempts
        self._by_prompt = {prompt_of(task)[-1]["content"]: task for task in self.engine.tasks}

    def dataset(self) -> Dataset:
        """Returns a dataset with a row for each task."""
        from datasets import Dataset

        rows = [{"prompt": prompt_of(task), "task_id": task.id} for task in self.engine.tasks]
        return Dataset.from_list(rows)  # pyright: ignore[reportUnknownMemberType]

    def environment(self) -> WebEnvironment:
        """Returns an environment: pass this method as `environment_factory`."""
        return WebEnvironment(self.engine, self._lines)

    def rollout(self, prompts: Sequence[Any], trainer: RolloutTrainer) -> dict[str, list[Any]]:
        """Runs a batch of episodes at once: pass this method as `rollout_func`."""
        if self.engine.settings.screenshot != "none":
            raise ValueError("rollout_func of TRL has no images; use environment_factory, or screenshot='none'")
        attempts = [Attempt(Conversation(self.engine, self._lines), self._task(prompt)) for prompt in prompts]
        for _ in range(self._attempts):
            self._run([attempt for attempt in attempts if attempt.is_due], trainer)
        self.engine.run_all([attempt.conversation.finish() for attempt in attempts])
        if all(attempt.conversation.lost for attempt in attempts):
            raise InfrastructureError(f"all {len(attempts)} attempts of the batch were lost {self._attempts} times")
        has_logprobs = all(attempt.logprobs is not None for attempt in attempts)
        return {
            "prompt_ids": [attempt.prompt_ids for attempt in attempts],
            "completion_ids": [attempt.ids for attempt in attempts],
            "logprobs": [attempt.logprobs for attempt in attempts] if has_logprobs else None,  # pyright: ignore
            "env_mask": [attempt.mask for attempt in attempts],
            "webgym_reward": [attempt.conversation.reward for attempt in attempts],
        }

    def _run(self, attempts: Sequence[Attempt], trainer: RolloutTrainer) -> None:
        self.engine.run_all([attempt.start(trainer) for attempt in attempts])
        active = [attempt for attempt in attempts if not attempt.is_over]
        while active:
            generate_turn(active, trainer)
            self.engine.run_all([attempt.act(trainer) for attempt in active])
            active = [attempt for attempt in active if not attempt.is_over]

    def _task(self, prompt: Any) -> Task:
        text: str = cast("Any", prompt)[-1]["content"] if isinstance(prompt, list) else prompt
        if text not in self._by_prompt:
            raise ValueError(f"the prompt is not one of dataset(): {text!r:.200}")
        return self._by_prompt[text]

    def reward(self, webgym_reward: Sequence[float | None], **columns: Any) -> list[float | None]:
        """Returns the rewards of `rollout`: pass this method in `reward_funcs`."""
        return list(webgym_reward)

    def close(self) -> None:
        """Releases the sessions; a farm that was started is stopped."""
        self.engine.close()
