"""Browser tasks for SkyRL: an environment of SkyRL-Gym.

    skyrl_gym.register(id="webgym", entry_point="webgym_rs.skyrl:WebTextEnv")

with `environment.skyrl_gym.webgym` in SkyRL's configuration: `{tasks: tasks.jsonl, farm: "http://host:7000"}`, and rows
that have the column `task_id`. The farm must have a session for each concurrent environment.

SkyRL has no mask for an episode, and a reward of 0 would count a lost browser as a failure. A lost episode therefore raises
`InfrastructureError`, which ends the batch; with `on_lost: nan` its reward is NaN, for a generator that handles it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, cast

from skyrl_gym.envs.base_text_env import BaseTextEnv, BaseTextEnvStepOutput, ConversationType

from ._episodes.conversation import ENDED, LOST, Conversation, prompt_of
from ._episodes.engine import shared_engine
from .errors import InfrastructureError


class WebTextEnv(BaseTextEnv):
    """One episode. `env_config` has the arguments of the Gymnasium environment (docs/python.md), `extras` the row."""

    def __init__(self, env_config: Mapping[str, Any], extras: Mapping[str, Any] | None = None):
        super().__init__()
        config, row = {str(key): value for key, value in env_config.items()}, dict(extras or {})
        self._on_lost, lines = config.pop("on_lost", "raise"), int(config.pop("page_text_lines", 40))
        if self._on_lost not in ("raise", "nan"):
            raise ValueError(f"on_lost is {self._on_lost!r}; it must be 'raise' or 'nan'")
        if "task_id" not in row:
            raise ValueError(f"the row has no task_id; its columns are {sorted(row)}")
        self._engine = shared_engine(config)
        self._task = self._engine.task(str(row["task_id"]))
        self.turns: int = 0
        self.max_turns: int = self._engine.settings.max_steps
        self._conversation = Conversation(self._engine, lines)

    def init(self, prompt: ConversationType) -> tuple[ConversationType, dict[str, Any]]:
        """Starts the task on a clean session. The first observation becomes part of the last message."""
        text = self._engine.run(self._conversation.start(self._task))
        self._raise_if_lost()
        messages = [dict(message) for message in prompt or cast("ConversationType", prompt_of(self._task))]
        messages[-1]["content"] += text
        return messages, {"task_id": self._task.id}

    def step(self, action: str) -> BaseTextEnvStepOutput:
        """Carries out the tool call of a reply."""
        self.turns += 1
        text = self._engine.run(self._conversation.reply(action))
        self._raise_if_lost()
        done, reward = self._conversation.done, self._conversation.reward
        return BaseTextEnvStepOutput(
            observations=[] if text in (ENDED, LOST) else [{"role": "user", "content": text}],
            reward=0.0 if not done else math.nan if reward is None else reward,
            done=done,
            metadata={"task_id": self._task.id, "infra_lost": self._conversation.lost},
            postprocessed_action=None,
        )

    def _raise_if_lost(self) -> None:
        if self._conversation.lost and self._on_lost == "raise":
            raise InfrastructureError(f"the episode of task {self._task.id} was lost; it must not count as a failure")

    def get_metrics(self) -> dict[str, Any]:
        return {"turns": self.turns, "infra_lost": self._conversation.lost}

    def close(self) -> None:
        """Releases the session."""
        self._engine.run(self._conversation.close())
