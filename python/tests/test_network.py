"""Recording and replaying the network traffic of a session."""

from __future__ import annotations

import pytest

import webgym_rs as wg
from webgym_rs import errors


def test_recorded_session_is_replayed_and_forked(farm: wg.Farm, site: str) -> None:
    with farm.lease(network={"record": "form", "session": "a#0"}) as session:
        session.goto(f"{site}/")
        session.step(wg.fill("Ada", id=1))
        assert session.network()["recorded"] >= 2
    with farm.lease(network={"replay": "form", "session": "a#0", "seed": 3}) as session:
        session.goto(f"{site}/")
        assert session.step(wg.fill("Ada", id=1)).title == "Ordered"
        assert session.network()["matches"]["missed"] == 0
        with session.fork() as fork:
            assert fork.text() == "Thank you, Ada"
        with session.fork(steps=1) as fork:
            assert fork.page().title == "Form"
            with pytest.raises(errors.ReplayMiss, match="/ordered"):
                fork.execute(wg.fill("Eve", id=1))


def test_session_without_archive_says_so(session: wg.Session, farm: wg.Farm) -> None:
    with pytest.raises(errors.BadRequest, match="neither records nor replays"):
        session.network()
    with pytest.raises(errors.BadRequest, match="replays no archive"):
        session.fork().__enter__()
    with pytest.raises(errors.BadRequest, match="nothing-here"):
        farm.lease(network={"replay": "nothing-here"}).__enter__()
