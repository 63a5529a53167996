"""Mistakes of programs are named, and leave no lease."""

from __future__ import annotations

import asyncio
import os

import pytest
from conftest import leases
from test_leases import key_of

import webgym_rs as wg
from webgym_rs import aio, errors


@pytest.mark.parametrize("url", ["localhost:7000", "", "ftp://host"])
def test_url_without_http_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="must begin with http"):
        wg.Farm(url)


def test_release_after_close_is_no_error(farm: wg.Farm) -> None:
    client = wg.Farm(farm.url, api_key=key_of(farm))
    with client.lease() as session:
        client.close()
        client.close()
        assert leases(farm) == []
    session.release()
    for use in (session.page, client.info, client.lease):
        with pytest.raises(RuntimeError, match="the farm is closed"):
            use()


def test_released_session_is_an_ended_lease(farm: wg.Farm) -> None:
    session = farm.lease()
    session.release()
    session.release()
    with pytest.raises((errors.InvalidInstance, errors.NotInUse)):
        session.page()


def test_farm_in_a_forked_process_is_refused(farm: wg.Farm) -> None:
    with farm.lease() as session:
        child = os.fork()
        if child == 0:
            os._exit(exit_status_of_child(farm, session))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert session.page()
        assert leases(farm) == [session.id]


def exit_status_of_child(farm: wg.Farm, session: wg.Session) -> int:
    """Tries what a child must not do. Closing has no effect there, so that `with` of the parent may end in it."""
    refused = 0
    for use in (farm.info, farm.lease, session.page):
        try:
            use()
        except RuntimeError as error:
            refused += "after a fork" in str(error)
    farm.close()
    return 0 if refused == 3 else 1


def test_second_event_loop_is_refused(farm: wg.Farm) -> None:
    client = aio.Farm(farm.url, api_key=key_of(farm))

    async def use() -> None:
        await client.info()

    asyncio.run(use())
    with pytest.raises(RuntimeError, match="another event loop"):
        asyncio.run(use())

    async def close() -> None:
        await client.close()

    asyncio.run(close())
