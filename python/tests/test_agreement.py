"""The package agrees with the farm, and its two clients with each other."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_type_hints

import httpx
import jsonschema
import pytest

import webgym_rs as wg
from webgym_rs import aio, errors, options

TOOLS = Path(__file__).resolve().parent.parent / "tools"


@pytest.fixture(scope="module")
def openapi(farm: wg.Farm) -> dict[str, Any]:
    return httpx.get(f"{farm.url}/openapi.json").json()


def test_sync_client_is_generated_from_the_async_one() -> None:
    subprocess.run([sys.executable, TOOLS / "make_sync.py", "--check"], check=True)


@pytest.mark.parametrize("name", ["Farm", "Session"])
def test_public_signatures_are_equal(name: str) -> None:
    def signatures(module: object) -> dict[str, str]:
        members = inspect.getmembers(getattr(module, name), inspect.isfunction)
        return {key: str(inspect.signature(value)) for key, value in members if not key.startswith("_")}

    of_async = {key: re.sub(r"Pending\[(\w+)\]", r"\1", text) for key, text in signatures(aio).items()}
    assert of_async == signatures(wg)
    assert len(of_async) > 3
    assert inspect.signature(aio.serve) == inspect.signature(wg.serve)


def test_every_error_code_has_a_class(openapi: dict[str, Any]) -> None:
    codes = openapi["components"]["schemas"]["Error"]["properties"]["code"]["enum"]
    assert set(errors.BY_CODE) == set(codes)
    families = (errors.InfrastructureError, errors.AgentError, errors.RequestError)
    for code, error in errors.BY_CODE.items():
        assert sum(issubclass(error, family) for family in families) == 1, code


def test_session_options_are_those_of_the_farm(openapi: dict[str, Any]) -> None:
    described = openapi["components"]["schemas"]["SessionOptions"]["properties"]
    assert set(get_type_hints(options.SessionOptions)) == set(described)


COMMANDS: list[Callable[[], wg.Command]] = [
    lambda: wg.visit("https://example.com"),
    wg.back,
    wg.forward,
    lambda: wg.click(1),
    lambda: wg.click(x=1, y=2),
    lambda: wg.fill("text", id="3"),
    lambda: wg.fill("text", x=1, y=2, press_enter=False, delete_existing=True),
    lambda: wg.select(4),
    lambda: wg.hover(5),
    lambda: wg.hover(x=1, y=2),
    lambda: wg.scroll("down", 6),
    lambda: wg.scroll("up", x=1, y=2),
    lambda: wg.hover_and_scroll(1, 2),
    lambda: wg.page_down(300),
    lambda: wg.page_up(full_page=True),
    lambda: wg.press("ctrl+a"),
    lambda: wg.press("ctrl", "a"),
    lambda: wg.type_text("text"),
    lambda: wg.key_down("shift"),
    lambda: wg.key_up("shift"),
    wg.tab_and_enter,
    lambda: wg.mouse_click(1, 2, button="right", clicks=2, keys=["ctrl"]),
    lambda: wg.mouse_down(1, 2),
    lambda: wg.mouse_move(1, 2),
    lambda: wg.mouse_up(1, 2),
    lambda: wg.wheel(1, 2, dy=100),
    lambda: wg.drag([(1, 2), (3, 4)]),
    lambda: wg.set_files(["a.txt"], 7),
    lambda: wg.set_files(["a.txt"], x=1, y=2),
    lambda: wg.wait(0.5),
    wg.open_tab,
    lambda: wg.switch_tab(2),
    wg.close_tab,
]
QUERIES = {
    "list_tabs",
    "get_page_metadata",
    "get_webpage_text",
    "get_interactive_rects",
    "get_screenshot_info",
    "screenshot",
}


def test_commands_match_the_schema_and_are_complete(openapi: dict[str, Any]) -> None:
    schema = openapi["components"]["schemas"]["Command"]
    built = [make() for make in COMMANDS]
    for command in built:
        jsonschema.validate(command.to_json(), schema)
    assert {command.name for command in built} | QUERIES == set(schema["properties"])


@pytest.mark.parametrize(
    ("target", "message"), [({}, "click needs"), ({"x": 1}, "x=1"), ({"id": 1, "x": 1, "y": 1}, "id=1")]
)
def test_unclear_target_is_refused(target: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        wg.click(**target)
