"""Lists and calls every tool with the command line of the MCP inspector. Each call is a session of its own."""

import json
import subprocess
import sys

ARGUMENTS = {
    "browser_navigate": ["url={site}shop/"],
    "browser_click": ["ref=1"],
    "browser_type": ["ref=2", "text=lamp"],
    "browser_press_key": ["key=Home"],
    "browser_hover": ["ref=1"],
    "browser_select_option": ["ref=9999"],
    "browser_drag": ["startRef=1", "endRef=2"],
    "browser_mouse_click_xy": ["x=5", "y=5"],
    "browser_tabs": ["action=list"],
    "task_submit": ["answer=42"],
}
# The page has no option with this ref, and no file chooser is open.
FAIL = {"browser_select_option", "browser_file_upload"}


def inspect(program: str, url: str, *arguments: str) -> dict:
    command = [program, "--cli", f"{url}/mcp?task_id=shop-price-on-page", "--transport", "http", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout.strip().startswith("{"), f"{command}: {done.stdout} {done.stderr}"
    return json.loads(done.stdout)


def main() -> None:
    program, url, site = sys.argv[1:]
    tools = inspect(program, url, "--method", "tools/list")["tools"]
    for tool in tools:
        name = tool["name"]
        given = [argument.format(site=site) for argument in ARGUMENTS.get(name, [])]
        flags = [flag for argument in given for flag in ("--tool-arg", argument)]
        result = inspect(program, url, "--method", "tools/call", "--tool-name", name, *flags)
        assert bool(result.get("isError")) == (name in FAIL), f"{name}: {result}"
    print(f"inspector: {len(tools)} tools listed and called")


main()
