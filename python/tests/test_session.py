"""What a session does, against a real farm and browser."""

from __future__ import annotations

from pathlib import Path

import numpy
import pytest
from conftest import DOWNLOAD

import webgym_rs as wg
from webgym_rs import errors


def test_step_acts_and_observes(session: wg.Session, site: str) -> None:
    session.goto(f"{site}/")
    before = session.observe(include=["screenshot", "ac_tree", "rects"])
    assert before.ac_tree is not None
    assert "text: Name, tag: input" in before.ac_tree
    assert before.screenshot_info is not None
    assert before.metadata is None
    after = session.step(wg.fill("Ada", id=1), include=["screenshot", "metadata", "ac_tree"])
    assert after.error is None
    assert after.result == {"status": "success"}
    assert (after.title, after.url) == ("Ordered", f"{site}/ordered?name=Ada")
    assert session.text() == "Thank you, Ada"


def test_ids_are_valid_after_goto(session: wg.Session, site: str) -> None:
    assert session.goto(f"{site}/").title == "Form"
    assert session.step(wg.fill("Bob", id=1)).url == f"{site}/ordered?name=Bob"


def test_failed_action_is_part_of_the_observation(session: wg.Session, site: str) -> None:
    session.goto(f"{site}/")
    observation = session.step(wg.click(id=99), include=["metadata"])
    assert isinstance(observation.error, errors.ElementNotFound)
    assert observation.result is None
    assert observation.title == "Form"


def test_failed_command_is_raised(session: wg.Session, site: str) -> None:
    with pytest.raises(errors.NavigationFailed, match="ERR_"):
        session.goto("http://127.0.0.1:1/")
    with pytest.raises(wg.AgentError, match="ERR_") as failure:
        session.execute(wg.visit("http://127.0.0.1:1/"))
    assert failure.value.status == 422
    session.goto(f"{site}/other")
    assert session.page().title == "Other"


def test_screenshot_is_decoded_on_access(session: wg.Session, site: str) -> None:
    session.goto(f"{site}/")
    screenshot = session.screenshot(interaction_mode="coordinates")
    assert screenshot.data.startswith(b"\x89PNG")
    assert "image" not in vars(screenshot)
    assert screenshot.array.shape == (screenshot.height, screenshot.width, 3) == (768, 1280, 3)
    assert screenshot.array is screenshot.array
    assert not screenshot.array.flags.writeable
    assert session.viewport() == (1280, 768)
    marked = session.screenshot(format="webp")
    assert marked.format == "webp"
    assert not numpy.array_equal(marked.array, screenshot.array)


def test_session_options_apply(farm: wg.Farm, site: str) -> None:
    with farm.lease(viewport={"width": 640, "height": 480}, locale="de-DE") as session:
        assert session.viewport() == (640, 480)
    with pytest.raises(errors.BadRequest, match="viewport"):
        farm.lease(viewport={"width": 1, "height": 1})


def test_storage_state_moves_to_another_lease(farm: wg.Farm, site: str) -> None:
    with farm.lease() as session:
        session.goto(f"{site}/")
        state = session.storage_state()
    with farm.lease(storage_state=state) as session:
        session.goto(f"{site}/")
        assert session.storage_state()["origins"][0]["localStorage"] == [{"name": "visits", "value": "2"}]
        session.set_storage_state({"cookies": [], "origins": []})
        assert session.storage_state()["cookies"] == []


def test_tabs(farm: wg.Farm, site: str) -> None:
    with farm.lease(tabs="many") as session:
        session.goto(f"{site}/")
        session.open_tab(f"{site}/other")
        first, second = session.tabs()
        assert (first.title, second.title) == ("Form", "Other")
        assert second.current
        session.switch_tab(first.id)
        observed = session.observe(include=["metadata"])
        assert observed.title == "Form"
        assert observed.tabs is not None
        assert [tab.current for tab in observed.tabs] == [True, False]
        session.close_tab(second.id)
        assert len(session.tabs()) == 1


def test_files(farm: wg.Farm, site: str, tmp_path: Path) -> None:
    with farm.lease(downloads="keep") as session:
        session.upload("cv ä.txt", b"hello")
        path = tmp_path / "more"
        path.write_bytes(b"from a file")
        session.upload("more.txt", path)
        assert session.download("more.txt") == b"from a file"
        session.goto(f"{site}/")
        info = session.observe(include=["ac_tree"]).ac_tree or ""
        chooser = next(line for line in info.splitlines() if "Attachment" in line).split(",")[0].removeprefix("id: ")
        assert session.step(wg.set_files(["cv ä.txt"], id=chooser), include=["metadata"]).title == "cv ä.txt"
        session.goto(f"{site}/prices.csv")
        files = {file.name: file for file in session.files()}
        assert files["prices.csv"].state == "complete"
        assert session.download("prices.csv") == DOWNLOAD
        session.delete_file("more.txt")
        with pytest.raises(errors.NotFound):
            session.download("more.txt")


def test_computer_runs_a_turn_of_a_model(session: wg.Session, site: str) -> None:
    session.goto(f"{site}/other")
    turn = session.computer("openai", {"type": "screenshot"})
    assert turn.error is None
    assert turn.screenshot is not None
    assert turn.screenshot.data.startswith(b"\x89PNG")
    assert turn.metadata.title == "Other"
    assert turn.scale == (1.0, 1.0)
    with pytest.raises(errors.BadRequest, match="dialect"):
        session.computer("klingon", {})


def test_history(session: wg.Session, site: str) -> None:
    session.goto(f"{site}/")
    session.goto(f"{site}/other")
    session.back()
    assert session.page().title == "Form"
    session.forward()
    assert session.page().title == "Other"
    session.probe()


def test_recording_and_live_view_of_a_session(farm: wg.Farm, site: str) -> None:
    with farm.lease(record=True) as session:
        session.goto(f"{site}/")
        assert b"webgym-recording-1" in session.recording("recording.json")
        assert session.live_url is not None
        assert session.live_control_url not in (None, session.live_url)
