"""Task files: JSON lines with `task_name`, `website` and, for the reference judge, `definite_answer`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias, cast


@dataclass(frozen=True)
class Task:
    """A task of a task file. `fields` has everything that its line has."""

    id: str
    goal: str
    url: str
    reference: str | None
    fields: Mapping[str, Any]


Tasks: TypeAlias = str | PathLike[str] | Sequence[Mapping[str, Any]]


def load_tasks(source: Tasks) -> list[Task]:
    """Reads a task file, or takes tasks that were read already."""
    if isinstance(source, (str, PathLike)):
        path = Path(source)
        # Not splitlines: it also splits at separators that JSON texts may contain, such as U+2028.
        texts = path.read_text(encoding="utf-8").split("\n")
        lines = [(f"{path}, line {number}", line) for number, line in enumerate(texts, 1)]
        tasks = [_task(_parse(line, place), place, number) for number, (place, line) in enumerate(lines) if line.strip()]
    else:
        tasks = [_task(fields, f"task {number}", number) for number, fields in enumerate(source)]
    if not tasks:
        raise ValueError("there are no tasks; pass the path of a task file or a list of tasks")
    return tasks


def _parse(line: str, place: str) -> Any:
    try:
        return json.loads(line)
    except ValueError as error:
        raise ValueError(f"{place} is not JSON: {error}") from None


def _task(fields: Any, place: str, number: int) -> Task:
    if not isinstance(fields, Mapping):
        raise ValueError(f"{place} is {fields!r}; it must be an object with the fields of a task")
    fields = cast("Mapping[str, Any]", fields)
    for name in ("task_name", "website"):
        if not isinstance(fields.get(name), str) or not fields[name].strip():
            raise ValueError(f"{place}: {name} is {fields.get(name)!r}; it must be a text that is not empty")
    reference = fields.get("definite_answer")
    if not isinstance(reference, str | None):
        raise ValueError(f"{place}: definite_answer is {reference!r}; it must be a text or null")
    website = fields["website"].strip()
    url = website if "://" in website else f"https://{website}"
    return Task(str(fields.get("task_id", number)), fields["task_name"], url, reference, fields)
