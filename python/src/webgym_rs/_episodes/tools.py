"""The tools that a model gets in a trainer, as JSON schemas and as calls in its replies.

Models of the Qwen family write a call as `<tool_call>{"name": "click", "arguments": {"element": 3}}</tool_call>`, and so
do their chat templates. `webgym_rs.trl.WebEnvironment` has a method for each tool.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, cast

from .. import commands
from ..commands import Command
from .actions import Answer

ELEMENT = {"type": "integer", "description": "The number of the element in the list of elements."}
_SPECIFICATIONS: dict[str, tuple[str, dict[str, dict[str, Any]]]] = {
    "click": ("Click an element.", {"element": ELEMENT}),
    "type_text": (
        "Replace the content of a field and press Enter.",
        {"element": ELEMENT, "text": {"type": "string", "description": "The new content."}},
    ),
    "scroll": (
        "Scroll the page by one screen.",
        {"direction": {"type": "string", "description": "Either up or down."}},
    ),
    "go_back": ("Go back to the previous page.", {}),
    "goto": ("Open a page.", {"url": {"type": "string", "description": "The address of the page."}}),
    "answer": (
        "Give the final answer, which ends the task.",
        {"text": {"type": "string", "description": "The answer."}},
    ),
}
_CALL = re.compile(r"<tool_call>(.*?)(?:</tool_call>|$)", re.DOTALL)


def _schema(name: str, description: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    body: dict[str, Any] = {"type": "object", "properties": dict(parameters)}
    if parameters:
        body["required"] = list(parameters)
    return {"type": "function", "function": {"name": name, "description": description, "parameters": body}}


TOOLS = [_schema(name, description, parameters) for name, (description, parameters) in _SPECIFICATIONS.items()]
"""The schemas of the tools, for chat templates."""


def _scroll(direction: str) -> Command:
    if direction not in ("up", "down"):
        raise ValueError(f"direction is {direction!r}; it must be up or down")
    return commands.page_down(full_page=True) if direction == "down" else commands.page_up(full_page=True)


def _click(element: Any) -> Command:
    return commands.click(id=int(element))


def _type_text(element: Any, text: Any) -> Command:
    return commands.fill(str(text), id=int(element), delete_existing=True)


def _goto(url: Any) -> Command:
    return commands.visit(str(url))


def _answer(text: Any) -> Answer:
    return Answer(str(text))


_BUILDERS: dict[str, Callable[..., Command | Answer]] = {
    "click": _click,
    "type_text": _type_text,
    "scroll": _scroll,
    "go_back": commands.back,
    "goto": _goto,
    "answer": _answer,
}


def build_action(name: str, arguments: Mapping[str, Any]) -> Command | Answer:
    """Returns the action of a tool call. An invalid call is a ValueError that the model can understand."""
    if name not in _BUILDERS:
        raise ValueError(f"there is no tool {name!r}; the tools are {', '.join(_BUILDERS)}")
    wanted = list(_SPECIFICATIONS[name][1])
    if sorted(arguments) != sorted(wanted):
        raise ValueError(f"{name} got the arguments {sorted(arguments)}; it needs {wanted}")
    try:
        return _BUILDERS[name](**arguments)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: {error}") from None


def parse_call(reply: str) -> tuple[str, dict[str, Any]]:
    """Returns name and arguments of the first tool call of a reply. A reply without one is a ValueError."""
    match = _CALL.search(reply)
    if match is None:
        raise ValueError('the reply has no tool call; write <tool_call>{"name": …, "arguments": {…}}</tool_call>')
    try:
        call: Any = json.loads(match.group(1))
    except ValueError as error:
        raise ValueError(f"the tool call is not JSON: {error}") from None
    fields = cast("dict[str, Any]", call) if isinstance(call, dict) else {}
    if not isinstance(fields.get("name"), str) or not isinstance(fields.get("arguments", {}), dict):
        raise ValueError('the tool call must be an object with "name" and "arguments"')
    return fields["name"], fields.get("arguments", {})
