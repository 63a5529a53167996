"""Lists and calls every tool with the MCP SDK, 1.x or 2.x, whichever is installed; over streamable HTTP and over stdio.

With 2.x, both forms of the protocol are used: stateless and the handshake.
"""

import argparse
import asyncio
import json
from contextlib import asynccontextmanager
from importlib.metadata import version

IS_MODERN = int(version("mcp").split(".")[0]) >= 2

CALLS = [
    ("browser_snapshot", {}),
    ("browser_navigate", {"url": "{site}shop/"}),
    ("browser_mouse_wheel", {"deltaY": 100}),
    ("browser_mouse_click_xy", {"element": "the page", "x": 5, "y": 5}),
    ("browser_press_key", {"key": "Home"}),
    ("browser_get_text", {}),
    ("browser_take_screenshot", {}),
    ("browser_wait_for", {"time": 0.1}),
    ("browser_tabs", {"action": "list"}),
    ("browser_hover", {"ref": "{a}"}),
    ("browser_drag", {"startRef": "{a}", "endRef": "{a}"}),
    ("browser_type", {"ref": "{input}", "text": "lamp"}),
    ("browser_click", {"element": "a link", "ref": "{a}"}),
    ("browser_navigate_back", {}),
    ("browser_navigate_forward", {}),
    # These need elements that the page does not have: the answer must be an error of the tool.
    ("browser_select_option", {"ref": "9999"}),
    ("browser_file_upload", {"files": [{"name": "a.txt", "content": "YQ=="}]}),
    ("task_goal", {}),
    ("task_submit", {"answer": "{answer}"}),
    ("browser_close", {}),
]
FAIL = {"browser_select_option", "browser_file_upload"}


def field(result, name: str, alias: str):
    return getattr(result, name, None) if hasattr(result, name) else getattr(result, alias)


def refs(snapshot: str) -> dict[str, str]:
    found = {}
    for line in snapshot.splitlines():
        if line.startswith("- ") and "[ref=" in line:
            found.setdefault(line.split()[1].rstrip(","), line.rsplit("[ref=", 1)[1].rstrip("]"))
    return found


async def use(session, names: set[str], task: dict, site: str, is_stateless: bool) -> None:
    called, known, browser = set(), {"site": site, "answer": task["definite_answer"]}, None
    for name, arguments in CALLS:
        if name not in names:
            continue
        filled = json.loads(json.dumps(arguments))
        for key, value in filled.items():
            if isinstance(value, str) and value.startswith("{"):
                filled[key] = value.format_map({"a": "1", "input": "1", **known})
        if is_stateless and browser:
            filled["session"] = browser
        result = await session.call_tool(name, filled)
        is_error = field(result, "is_error", "isError")
        assert bool(is_error) == (name in FAIL), f"{name}: {result.content}"
        content = result.content[0]
        if name == "browser_take_screenshot":
            assert content.type == "image" and field(content, "mime_type", "mimeType") == "image/png", content
        elif content.type == "text":
            known.update(refs(content.text))
        if is_stateless:
            browser = result.content[-1].text.removeprefix("session: ")
        if name == "task_submit":
            structured = field(result, "structured_content", "structuredContent")
            assert structured["outcome"] in ("success", "failure"), structured
        called.add(name)
    assert called == names, f"not called: {names - called}"


@asynccontextmanager
async def connect(target: str, webgym: list[str], mode: str):
    if IS_MODERN:
        from mcp import Client, StdioServerParameters, stdio_client

        server = target or stdio_client(StdioServerParameters(command=webgym[0], args=webgym[1:]))
        async with Client(server, mode=mode) as client:
            yield client
        return
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client
    from mcp.client.streamable_http import streamablehttp_client

    parameters = StdioServerParameters(command=webgym[0], args=webgym[1:]) if webgym else None
    opened = streamablehttp_client(target) if target else stdio_client(parameters)
    async with opened as streams, ClientSession(streams[0], streams[1]) as session:
        await session.initialize()
        yield session


async def check(target: str, webgym: list[str], task: dict, site: str, mode: str) -> None:
    is_stateless = IS_MODERN and mode == "auto" and bool(target)
    async with connect(target, webgym, mode) as session:
        tools = (await session.list_tools()).tools
        names = {tool.name for tool in tools}
        has_session = "session" in (field(tools[0], "input_schema", "inputSchema"))["properties"]
        assert has_session == is_stateless, f"{mode}: {tools[0]}"
        await use(session, names, task, site, is_stateless)
    where = "HTTP" if target else "stdio"
    print(f"mcp {version('mcp')}, {where}, {mode}: {len(names)} tools listed and called")


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("url", help="of webgym env")
    parser.add_argument("tasks")
    parser.add_argument("site")
    parser.add_argument("webgym", nargs=argparse.REMAINDER, help="the command of the stdio server")
    options = parser.parse_args()
    with open(options.tasks, encoding="utf-8") as file:
        task = json.loads(file.readline())
    for mode in ("auto", "legacy") if IS_MODERN else ("handshake",):
        await check(f"{options.url}/mcp?task_id={task['task_id']}", [], task, options.site, mode)
        await check("", options.webgym, task, options.site, mode)


asyncio.run(main())
