"""BrowserGym's environments run on leased sessions, and leave no lease."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import pytest
from conftest import FARM_ARGUMENTS, leases, wait_until
from playwright.sync_api import Error as PlaywrightError
from playwright.sync_api import Playwright, sync_playwright
from test_leases import ENDS, browser_processes, key_of, run

import webgym_rs as wg

core: Any = pytest.importorskip("browsergym.core")
from webgym_rs.browsergym import FarmPlaywright, serve_miniwob, use_farm  # noqa: E402

QUICK: dict[str, Any] = {"slow_mo": 0, "pre_observation_delay": 0}
ENV = """
import os, signal, sys, time, gymnasium, browsergym.core
from webgym_rs.browsergym import use_farm
use_farm(sys.argv[1], api_key=os.environ["KEY"])
env = gymnasium.make("browsergym/openended", task_kwargs={"start_url": sys.argv[2]}, slow_mo=0, pre_observation_delay=0)
env.reset()
print("leased", flush=True)
"""


@pytest.fixture(scope="module")
def farm() -> Iterator[wg.Farm]:
    # A minute of a lease is ten seconds: time to connect on a busy machine, and killed programs leave no lease for long.
    with wg.serve(4, arguments=[*FARM_ARGUMENTS, "--lease-minute=10"]) as farm:
        yield farm


@pytest.fixture(scope="module")
def playwright() -> Iterator[Playwright]:
    with sync_playwright() as playwright:
        yield playwright
    core._set_global_playwright(None)


@pytest.fixture
def leased(farm: wg.Farm, playwright: Playwright) -> Iterator[FarmPlaywright]:
    with use_farm(farm, playwright=playwright) as leased:
        yield leased
    assert leases(farm) == []


def make(site: str, **settings: Any) -> gymnasium.Env[Any, Any]:
    return gymnasium.make("browsergym/openended", task_kwargs={"start_url": f"{site}/"}, **{**QUICK, **settings})


def bid_of(observation: dict[str, Any], name: str) -> str:
    """Returns BrowserGym's id of the last element with this accessible name."""
    nodes = observation["axtree_object"]["nodes"]
    return [n["browsergym_id"] for n in nodes if n.get("name", {}).get("value") == name and "browsergym_id" in n][-1]


def test_observations_and_actions_are_browsergyms(leased: FarmPlaywright, farm: wg.Farm, site: str, tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("hello")
    env = make(site, viewport={"width": 640, "height": 480})
    observation, _ = env.reset(seed=1)
    assert env.observation_space.contains(observation)
    assert observation["screenshot"].shape == (480, 640, 3)
    attachment = bid_of(observation, "Attachment")
    for action in (f'fill("{bid_of(observation, "Name")}", "Ada")', f'upload_file("{attachment}", "{tmp_path}/letter.txt")'):
        observation, *_ = env.step(action)
        assert observation["last_action_error"] == ""
    assert observation["open_pages_titles"] == ("letter.txt",)
    observation, *_ = env.step(f'click("{bid_of(observation, "Order")}")')
    assert observation["url"] == f"{site}/ordered?name=Ada"
    observation, *_ = env.step(f'send_msg_to_user("done")\ngoto("{site}/")')
    assert observation["chat_messages"][-1]["message"] == "done"
    observation, *_ = env.step(f'click("{bid_of(observation, "New tab")}")')
    assert observation["open_pages_urls"] == (f"{site}/", f"{site}/other")
    assert len(leases(farm)) == 1
    env.close()
    assert leases(farm) == []


def test_copied_text_is_pasted(leased: FarmPlaywright, farm: wg.Farm, site: str) -> None:
    env = make(site)
    observation, _ = env.reset()
    name = bid_of(observation, "Name")
    keys = [f'press("{name}", "Control+{key}")' for key in "acv"]
    observation, *_ = env.step("\n".join([f'fill("{name}", "Ada")', *keys[:2], f'fill("{name}", "")', keys[2]]))
    assert observation["last_action_error"] == ""
    base: Any = env.unwrapped
    base.page.wait_for_function("document.querySelector('[name=name]').value == 'Ada'")
    env.close()


def test_open_connection_keeps_the_lease(leased: FarmPlaywright, farm: wg.Farm, site: str) -> None:
    env = make(site)
    env.reset()
    unused = farm.lease(minutes=1, keep_alive=False)
    wait_until(lambda: unused.id not in leases(farm), "the lease without a connection expires")
    assert len(leases(farm)) == 1
    env.step("noop(0)")
    env.close()


def test_every_episode_has_a_lease_of_its_own(leased: FarmPlaywright, farm: wg.Farm, site: str) -> None:
    first, second = make(site), make(site)
    first.reset()
    second.reset()
    held = leases(farm)
    assert len(held) == 2
    base: Any = first.unwrapped
    session = leased.chromium.session_of(base.browser)
    assert session is not None
    assert session.id in held
    first.reset()
    assert len(leases(farm)) == 2
    assert session.id not in leases(farm)
    first.close()
    second.close()


def test_failed_setup_releases_by_close(leased: FarmPlaywright, farm: wg.Farm) -> None:
    env = make("http://127.0.0.1:1")
    for _ in range(2):
        with pytest.raises(PlaywrightError, match="ERR_"):
            env.reset()
        assert len(leases(farm)) == 1
    env.close()
    assert leases(farm) == []


@pytest.mark.parametrize("failure", [ValueError, KeyboardInterrupt])
def test_end_of_use_releases_what_was_not_closed(
    farm: wg.Farm, playwright: Playwright, site: str, failure: type[BaseException]
) -> None:
    def fail() -> None:
        with use_farm(farm, playwright=playwright):
            make(site).reset()
            assert len(leases(farm)) == 1
            raise failure

    with pytest.raises(failure):
        fail()
    assert leases(farm) == []


@pytest.mark.parametrize("end", ["exception", "interrupt", "os._exit", "kill", "kill during reset"])
def test_program_that_ends_leaves_no_lease(farm: wg.Farm, site: str, end: str) -> None:
    program = ENV + ENDS.get(end, "time.sleep(600)")
    if end in ENDS:
        assert run(program, farm.url, f"{site}/", key=key_of(farm)) == "leased\n"
    else:
        environment = {**os.environ, "KEY": key_of(farm)}
        command = [sys.executable, "-c", program, farm.url, f"{site}/"]
        with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL) as process:
            wait_until(lambda: len(leases(farm)) == 1, "the program acquires a lease")
            process.send_signal(signal.SIGKILL)
    wait_until(lambda: leases(farm) == [], f"the lease ends after {end}")


def test_lost_browser_is_an_error_and_not_a_reward(playwright: Playwright, site: str) -> None:
    with wg.serve(1, arguments=FARM_ARGUMENTS) as farm, use_farm(farm, playwright=playwright):
        env = make(site)
        env.reset()
        assert farm._process is not None
        for pid in browser_processes(farm._process.pid):
            os.kill(pid, signal.SIGKILL)
        with pytest.raises(PlaywrightError):  # noqa: PT011
            env.step("noop(0)")
        observation, _ = env.reset()
        assert observation["url"] == f"{site}/"
        env.close()
        assert leases(farm) == []


def test_full_farm_is_no_capacity(playwright: Playwright, site: str) -> None:
    with wg.serve(1, arguments=FARM_ARGUMENTS) as farm, use_farm(farm, playwright=playwright, wait=0):
        first, second = make(site), make(site)
        first.reset()
        with pytest.raises(wg.NoCapacity):
            second.reset()
        first.close()
        # BrowserGym needs this after a reset that failed.
        second.close()
        second.reset()


def test_chat_can_be_a_page(farm: wg.Farm, playwright: Playwright, site: str) -> None:
    with use_farm(farm, playwright=playwright, chat="page"):
        env = make(site)
        env.reset()
        base: Any = env.unwrapped
        base.chat.add_message("assistant", "I have found it")
        assert "I have found it" in base.chat.page.inner_text("body")
        assert len(base.context.pages) == 1
        assert len(leases(farm)) == 1
        env.close()
    assert leases(farm) == []


def test_chat_without_page_names_the_option(leased: FarmPlaywright, site: str) -> None:
    env = make(site, wait_for_user_message=True)
    with pytest.raises(AttributeError, match="chat='page'"):
        env.reset()
    env.close()


def test_options_without_effect_are_logged(leased: FarmPlaywright, site: str, caplog: pytest.LogCaptureFixture) -> None:
    env = make(site, headless=False, pw_chromium_kwargs={"executable_path": "/nowhere/chrome"})
    with caplog.at_level(logging.WARNING, "webgym_rs.browsergym"):
        env.reset()
    env.close()
    assert [r.message for r in caplog.records if r.name.startswith("webgym_rs")] == [
        "a leased browser ignores these options of chromium.launch: headless, executable_path"
    ]
    with pytest.raises(AttributeError, match="use chromium.launch"):
        leased.chromium.launch_persistent_context("profile")


def test_previous_playwright_is_restored(farm: wg.Farm, playwright: Playwright, site: str) -> None:
    core._set_global_playwright(playwright)
    with use_farm(farm) as outer:
        with use_farm(farm) as inner:
            assert core._get_global_playwright() is inner
            assert inner.chromium.name == "chromium"
        assert core._get_global_playwright() is outer
        env = make(site)
        env.reset()
        env.close()
    assert core._get_global_playwright() is playwright


def test_miniwob_pages_are_served(leased: FarmPlaywright, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINIWOB_URL", "before")
    with serve_miniwob() as url:
        assert os.environ["MINIWOB_URL"] == url
        env = gymnasium.make("browsergym.miniwob:browsergym/miniwob.click-test", **QUICK)
        observation, _ = env.reset(seed=1)
        assert observation["goal"] == "Click the button."
        button = bid_of(observation, "Click Me!")
        _, reward, terminated, _, _ = env.step(f'click("{button}")')
        assert (reward, terminated) == (1, True)
        env.close()
    assert os.environ["MINIWOB_URL"] == "before"
