"""Trajectories and steps as objects, the same for every file format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .components import Action, Observation, Response, Reward, Task


@dataclass
class Step:
    """One observation, reply and action."""

    observation: Observation
    action: Action | None
    response: Response | None
    """None for a step that the model did not decide, which ends an interrupted episode."""
    reward: Reward
    same_as_next_screenshot: bool | None
    extras: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Token ids, log probabilities, finish reason and timings, as far as they were recorded."""


@dataclass
class Trajectory:
    """A recorded episode."""

    split: str
    iteration: int
    index: int
    """The position in the queue of its iteration."""
    steps: list[Step]
    metadata: Mapping[str, Any]
    """Outcome, ending, attempt and further fields of the whole trajectory."""

    @property
    def task(self) -> Task | None:
        """The task; None if the trajectory has no steps."""
        return self.steps[0].observation.task if self.steps else None

    @property
    def reward(self) -> int | None:
        """The reward of the last step; None if the trajectory is masked, whatever its steps contain."""
        return None if self.is_masked else self._last_reward

    @property
    def _last_reward(self) -> int:
        return self.steps[-1].reward.reward if self.steps else 0

    @property
    def outcome(self) -> str:
        """success, failure, blocked, infra_lost, judge_error, cancelled or replay_miss; inferred for files that lack it."""
        recorded = self.metadata.get("outcome")
        if recorded is not None:
            return recorded
        if self.steps and self.steps[-1].reward.is_blocked:
            return "blocked"
        return "success" if self._last_reward == 1 else "failure"

    @property
    def is_masked(self) -> bool:
        """Whether trainers must leave it out: it was lost, cancelled, not judged or not in the archive: it has no reward."""
        return self.outcome in ("infra_lost", "judge_error", "cancelled", "replay_miss")

    @property
    def group_id(self) -> str | None:
        """Equal for all attempts at a task that were sampled together (`env_config.group_size`)."""
        return self.metadata.get("group_id")

    @property
    def policy_versions(self) -> list[str]:
        """The versions of the policy that replied, in the order of their first reply."""
        return list(self.metadata.get("policy_versions") or [])


def trajectory_of_file(steps: Sequence[Mapping[str, Any]], split: str, iteration: int, position: int) -> Trajectory:
    """Returns the trajectory of a `.pt` file, whose steps are dicts."""
    metadata: Mapping[str, Any] = (steps[0].get("trajectory_metadata") or {}) if steps else {}
    none: list[Mapping[str, Any]] = [{} for _ in steps]
    extras: Sequence[Mapping[str, Any]] = metadata.get("step_extras") or none
    parsed = [
        Step(
            step["observation"],
            step.get("action"),
            step.get("response"),
            step.get("reward") or Reward(),
            step.get("same_as_next_screenshot"),
            extra,
        )
        for step, extra in zip(steps, extras, strict=True)
    ]
    task = parsed[0].observation.task if parsed else None
    index = task.trajectory_index if task is not None else position
    return Trajectory(split, iteration, index, parsed, metadata)
