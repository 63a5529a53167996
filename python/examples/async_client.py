"""Visits pages concurrently, each in its own session, with at most 4 browser sessions at a time."""

import asyncio
import sys

import webgym_rs as wg
from webgym_rs import aio

pages = sys.argv[1:] or ["https://example.com", "https://example.org", "https://www.rust-lang.org"]
arguments = ["--allow-private-network"] if "localhost" in pages[0] or "127.0.0.1" in pages[0] else []


async def visit(farm: aio.Farm, url: str) -> str:
    # Waits here while all sessions are leased.
    async with farm.lease() as session:
        try:
            page = await session.goto(url)
        except wg.AgentError as error:
            return f"{url}: {error}"
        return f"{url}: {page.title}, {len((page.ac_tree or '').splitlines())} interactive elements"


async def main() -> None:
    async with aio.serve(4, arguments=arguments) as farm:
        for line in await asyncio.gather(*(visit(farm, url) for url in pages)):
            print(line)


asyncio.run(main())
