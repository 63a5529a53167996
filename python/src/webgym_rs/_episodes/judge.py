"""Rewards at the end of an episode: by the reference answer, as `judge=reference` of `webgym rollout`, or by a callable."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from .._binary import find_binary
from ..commands import CommandLike
from ..errors import WebgymError
from ..observations import Observation
from .tasks import Task


@dataclass(frozen=True)
class Ended:
    """An episode that ended by an answer or at the step limit."""

    task: Task
    answer: str | None
    """The answer; None at the step limit."""
    actions: Sequence[CommandLike | str]
    observation: Observation
    """The last one."""


Reward: TypeAlias = Callable[[Ended], float]


class ReferenceJudge:
    """Gives 1 for an answer that states the same as the task's `definite_answer`, else 0.

    The comparison is that of the `webgym` program, which runs beside this one and ends with it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None

    def __call__(self, ended: Ended) -> float:
        if ended.answer is None or ended.task.reference is None:
            return 0.0
        return float(self.matches(ended.answer, ended.task.reference))

    def matches(self, answer: str, reference: str) -> bool:
        with self._lock:
            if self._process is None:
                command = [str(find_binary()), "compare"]
                pipe = subprocess.PIPE
                self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, encoding="utf-8")
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            self._process.stdin.write(json.dumps({"answer": answer, "reference": reference}) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        if not line:
            raise WebgymError(f"webgym compare ended with status {self._process.wait()}")
        return json.loads(line)["matches"]

    def close(self) -> None:
        with self._lock:
            process, self._process = self._process, None
        if process is not None:
            process.communicate()


def reward_of(choice: Reward | str, tasks: Sequence[Task]) -> Reward:
    """Returns the callable that is meant by the argument `reward`."""
    if callable(choice):
        return choice
    if choice != "reference":
        raise ValueError(f"reward is {choice!r}; it must be 'reference' or a callable that takes the ended episode")
    lacking = [task.id for task in tasks if not (task.reference or "").strip()]
    if lacking:
        raise ValueError(
            f"{len(lacking)} tasks have no definite_answer (the first is {lacking[0]!r}), so they cannot be judged by it; "
            "pass reward=CALLABLE"
        )
    return ReferenceJudge()
