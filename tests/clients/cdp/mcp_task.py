"""Playwright MCP: does the practice task in the lease at CDP_URL through the tools of the server.

Usage: mcp_task.py CDP_URL SITE NODE_MODULES
"""

import asyncio
import re
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


def element(snapshot: str, pattern: str) -> str:
    """Returns the reference of the element in a snapshot whose line matches."""
    line = next(line for line in snapshot.splitlines() if re.search(pattern, line))
    return re.search(r"\[ref=(\w+)\]", line)[1]


async def call(session: ClientSession, tool: str, **arguments) -> str:
    result = await session.call_tool(tool, arguments)
    text = "\n".join(part.text for part in result.content if part.type == "text")
    is_error = getattr(result, "isError", None) or getattr(result, "is_error", None)
    assert not is_error, f"{tool}: {text}"
    return text


async def main(cdp_url: str, site: str, modules: str) -> None:
    command = [f"{modules}/@playwright/mcp/cli.js", "--cdp-endpoint", cdp_url, "--snapshot-mode", "full"]
    async with stdio_client(StdioServerParameters(command="node", args=command)) as (read, write):
        async with ClientSession(read, write) as session:
            await session.initialize()
            await call(session, "browser_navigate", url=f"{site}/course/controlled")
            page = await call(session, "browser_snapshot")
            for name, text in [("Upper case", "heron"), ("Digits only", "2024")]:
                ref = element(page, rf'textbox "{name}"')
                await call(session, "browser_type", element=name, ref=ref, target=ref, text=text, slowly=True)
            ref = element(page, 'button "Save"')
            await call(session, "browser_click", element="Save", ref=ref, target=ref)
            assert "HERON" in await call(session, "browser_snapshot")


asyncio.run(main(*sys.argv[1:4]))
