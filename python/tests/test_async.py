"""The async client, with asyncio."""

from __future__ import annotations

import asyncio

import pytest
from conftest import FARM_ARGUMENTS, leases, wait_until
from test_leases import key_of

import webgym_rs as wg
from webgym_rs import aio


def test_sessions_work_concurrently(farm: wg.Farm, site: str) -> None:
    async def order(client: aio.Farm, name: str) -> str:
        async with client.lease() as session:
            await session.goto(f"{site}/")
            await session.observe(include=["ac_tree"])
            await session.step(wg.fill(name, id=1))
            return await session.text()

    async def main() -> list[str]:
        async with aio.Farm(farm.url, api_key=key_of(farm)) as client:
            return await asyncio.gather(*(order(client, f"guest {number}") for number in range(8)))

    assert asyncio.run(main()) == [f"Thank you, guest {number}" for number in range(8)]
    assert leases(farm) == []


def test_serve_and_await(site: str) -> None:
    async def main() -> str:
        async with aio.serve(1, arguments=FARM_ARGUMENTS) as farm:
            session = await farm.lease()
            await session.goto(f"{site}/other")
            title = (await session.page()).title
            await session.release()
            return title

    assert asyncio.run(main()) == "Other"


def test_cancelled_task_releases_its_lease(farm: wg.Farm) -> None:
    async def main() -> None:
        async with aio.Farm(farm.url, api_key=key_of(farm)) as client:
            leased = asyncio.Event()

            async def hold() -> None:
                async with client.lease() as session:
                    leased.set()
                    await session.execute(wg.wait(60))

            task = asyncio.create_task(hold())
            await leased.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.to_thread(wait_until, lambda: leases(farm) == [], "the cancelled task releases")

    asyncio.run(main())


def test_error_of_start_is_raised_on_enter() -> None:
    async def main() -> None:
        async with aio.serve(1, arguments=["--no-such-flag"]):
            pass

    with pytest.raises(wg.FarmStartError, match="no-such-flag"):
        asyncio.run(main())
