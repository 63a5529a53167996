"""One row per step, with the columns of the Parquet dataset (docs/formats.md) except those about the image file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from ._model import Step, Trajectory
from .components import Response, Task

OWN_METADATA = ("keypoint_step_ids", "outcome", "group_id", "policy_versions", "task_extra", "step_extras")


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _json_or_none(value: Mapping[str, Any] | None) -> str | None:
    return _json(value) if value else None


def rows(trajectory: Trajectory) -> Iterator[dict[str, Any]]:
    shared = _trajectory_columns(trajectory)
    count = len(trajectory.steps)
    keypoints: list[int] = trajectory.metadata.get("keypoint_step_ids") or []
    for number, step in enumerate(trajectory.steps):
        position = {"step": number, "steps": count, "is_last": number + 1 == count, "is_keypoint": number in keypoints}
        reward = _reward_columns(step, trajectory.is_masked)
        yield {**shared, **position, **reward, **_page_columns(step), **_reply_columns(step)}


def _trajectory_columns(trajectory: Trajectory) -> dict[str, Any]:
    task = trajectory.task or Task()
    names = ("task_name", "website", "domain", "subdomain", "difficulty", "max_steps", "attempt_level", "reference_answer")
    extra = {name: value for name, value in trajectory.metadata.items() if name not in OWN_METADATA}
    return {
        "split": trajectory.split,
        "iteration": trajectory.iteration,
        "trajectory_index": trajectory.index,
        "task_id": None if task.task_id is None else str(task.task_id),
        **{name: getattr(task, name) for name in names},
        "evaluator_reference": _json(task.evaluator_reference or []),
        "task_extra": _json_or_none(trajectory.metadata.get("task_extra")),
        "outcome": trajectory.outcome,
        "trajectory_reward": trajectory.reward,
        "is_masked": trajectory.is_masked,
        "group_id": trajectory.group_id,
        "advantage": None,
        "trajectory_extra": _json_or_none(extra),
    }


def _reward_columns(step: Step, is_masked: bool) -> dict[str, Any]:
    reward = step.reward
    texts = [reward.evaluation] if isinstance(reward.evaluation, str) else list(reward.evaluation)
    return {
        "reward": None if is_masked else reward.reward,
        "is_blocked": reward.is_blocked,
        "submit": reward.submit,
        "submission_judgment": reward.submission_judgment,
        "evaluation": [text for text in texts if texts != [""]],
    }


def _page_columns(step: Step) -> dict[str, Any]:
    page: Mapping[str, Any] = step.observation.page_metadata or {}
    return {
        "screenshot_path": step.observation.image_path,
        "same_as_next_screenshot": step.same_as_next_screenshot,
        "url": page.get("url", ""),
        "title": page.get("title", ""),
        "ac_tree": step.observation.ac_tree,
    }


def _reply_columns(step: Step) -> dict[str, Any]:
    action, response, extras = step.action, step.response or Response(), step.extras
    return {
        "action_key": action.action["key"] if action else None,
        "action_arguments": _json(action.action["arguments"]) if action else None,
        "action_string": action.action_string if action else None,
        "raw_prompt": response.raw_prompt,
        "raw_response": response.raw_response,
        "answering_tokens": _json_or_none(response.answering_tokens),
        "prompt_token_ids": extras.get("prompt_token_ids"),
        "token_ids": extras.get("token_ids"),
        "logprobs": extras.get("logprobs"),
        "finish_reason": extras.get("finish_reason"),
        "policy_version": extras.get("policy_version"),
        "timings_ms": _json_or_none(extras.get("timings_ms")),
    }
