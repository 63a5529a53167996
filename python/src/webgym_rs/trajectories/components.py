"""The five classes of trajectory files, with the attributes that docs/formats.md lists.

Files name them as classes of the original's module `webgym.data.components`. They are read without that module;
`install_shim` provides it, for `torch.load` where the original is not installed.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib.util import find_spec
from types import ModuleType
from typing import Any

MODULE = "webgym.data.components"


# Every field has a default, so that an attribute that a file lacks has a value.
@dataclass
class Task:
    """A task with its step limit and its index in the iteration."""

    task_name: str = ""
    domain: str = ""
    subdomain: str = ""
    website: str = ""
    difficulty: int = 0
    evaluator_reference: Any = None
    reference_answer: str | None = None
    attempt_level: int = 0
    task_id: str | int | None = None
    max_steps: int = 0
    trajectory_index: int = 0


@dataclass
class Observation:
    """What the agent saw before a step."""

    task: Task | None = None
    image_path: str = ""
    ac_tree: str | None = None
    page_metadata: Any = None


@dataclass
class Action:
    """What the agent did: `{"key", "arguments"}`, and the sentence in which it announced it."""

    action: Any = None
    action_string: str = ""


@dataclass
class Response:
    """The model's response and the prompt."""

    raw_response: str = ""
    answering_tokens: Any = None
    raw_prompt: str = ""


@dataclass
class Reward:
    """The reward of a step and the judge's explanation."""

    reward: int = 0
    evaluation: Any = ""
    is_blocked: bool = False
    submit: bool = False
    submission_judgment: str | None = None


CLASSES: dict[str, type] = {kind.__name__: kind for kind in (Task, Observation, Action, Response, Reward)}


def install_shim() -> None:
    """Provides `webgym.data.components` with these classes, unless the original is installed."""
    if MODULE in sys.modules or _is_original_installed():
        return
    parent: ModuleType | None = None
    for name in ("webgym", "webgym.data", MODULE):
        module = sys.modules.setdefault(name, ModuleType(name))
        if parent is not None:
            setattr(parent, name.rpartition(".")[2], module)
        parent = module
    for name, kind in CLASSES.items():
        setattr(parent, name, kind)


def _is_original_installed() -> bool:
    try:
        return find_spec(MODULE) is not None
    except ModuleNotFoundError:
        return False
