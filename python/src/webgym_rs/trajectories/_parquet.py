"""Reads the Parquet dataset that `webgym export --to parquet` writes. Needs pyarrow."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from importlib import import_module
from itertools import groupby
from pathlib import Path
from typing import Any, cast

from ._model import Trajectory, trajectory_of_file
from .components import Action, Observation, Response, Reward, Task

TASK_COLUMNS = ("task_name", "domain", "subdomain", "website", "difficulty", "reference_answer", "attempt_level")
EXTRA_COLUMNS = ("prompt_token_ids", "token_ids", "logprobs", "finish_reason", "policy_version")


class ParquetFile:
    """A file of the dataset: one iteration, or a rank of it. It does not have the run's metadata."""

    metadata: Mapping[str, Any] = {}

    def __init__(self, path: Path, split: str, iteration: int):
        self.path, self._split, self._iteration = path, split, iteration

    @cached_property
    def _ranges(self) -> list[tuple[int, int]]:
        """The first row and the number of rows of each trajectory."""
        indexes = self._table(["trajectory_index"])
        rows = groupby(range(len(indexes)), key=lambda row: indexes[row]["trajectory_index"])
        groups = [list(group) for _, group in rows]
        return [(group[0], len(group)) for group in groups]

    def _table(self, columns: list[str] | None = None, rows: tuple[int, int] | None = None) -> list[dict[str, Any]]:
        try:
            dataset = cast(Any, import_module("pyarrow.dataset"))
        except ImportError as error:
            raise ImportError("pyarrow is not installed; run: pip install 'webgym-rs[data]'") from error
        opened = dataset.dataset(str(self.path))
        if rows is None:
            return opened.to_table(columns=columns).to_pylist()
        return opened.take(list(range(rows[0], rows[0] + rows[1]))).to_pylist()

    def __len__(self) -> int:
        return len(self._ranges)

    def read(self, position: int) -> Trajectory:
        rows = self._table(rows=self._ranges[position])
        return trajectory_of_file(_steps(rows), self._split, self._iteration, position)


def _json(text: str | None) -> Any:
    return None if text is None else json.loads(text)


def _steps(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    first = rows[0]
    fields = {name: first[name] for name in (*TASK_COLUMNS, "task_id", "max_steps", "trajectory_index")}
    task = Task(**fields, evaluator_reference=_json(first["evaluator_reference"]))
    steps = [_step(row, task) for row in rows]
    keypoints = [number for number, row in enumerate(rows) if row["is_keypoint"]]
    metadata: dict[str, Any] = {"keypoint_step_ids": keypoints, "outcome": first["outcome"]}
    if first.get("group_id") is not None:
        metadata["group_id"] = first["group_id"]
    versions = list(dict.fromkeys(row["policy_version"] for row in rows if row.get("policy_version") is not None))
    if versions:
        metadata["policy_versions"] = versions
    metadata.update(_json(first["trajectory_extra"]) or {})
    if first["task_extra"] is not None:
        metadata["task_extra"] = _json(first["task_extra"])
    extras = [_extras(row) for row in rows]
    if any(extras):
        metadata["step_extras"] = extras
    steps[0]["trajectory_metadata"] = metadata
    return steps


def _step(row: Mapping[str, Any], task: Task) -> dict[str, Any]:
    page = {"title": row["title"], "url": row["url"]}
    reward = {name: row[name] for name in ("reward", "evaluation", "is_blocked", "submit", "submission_judgment")}
    # Null in the rows of masked trajectories; the class has a number, as in other files.
    reward["reward"] = reward["reward"] or 0
    has_response = row["raw_response"] or row["raw_prompt"]
    answer = Response(row["raw_response"], _json(row["answering_tokens"]) or {}, row["raw_prompt"])
    action = {"key": row["action_key"], "arguments": _json(row["action_arguments"])}
    return {
        "observation": Observation(task, row["screenshot_path"], row["ac_tree"], page),
        "action": Action(action, row["action_string"]) if row["action_key"] is not None else None,
        "response": answer if has_response else None,
        "reward": Reward(**reward),
        "same_as_next_screenshot": row["same_as_next_screenshot"],
    }


def _extras(row: Mapping[str, Any]) -> dict[str, Any]:
    extras = {name: row[name] for name in EXTRA_COLUMNS if row.get(name) is not None}
    return {**extras, "timings_ms": _json(row["timings_ms"])} if row["timings_ms"] is not None else extras
