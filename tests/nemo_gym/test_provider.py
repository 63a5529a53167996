"""The provider `webgym` in NeMo Gym's interactive browser environment."""

import logging
from unittest.mock import MagicMock

import pytest
import pytest_asyncio
from app import InteractiveBrowserConfig, InteractiveBrowserResourcesServer
from browser import BrowserSessionError, BrowserSessionSpec, create_session_provider, list_session_providers
from conftest import SESSIONS, leases
from fastapi.testclient import TestClient
from nemo_gym.server_utils import ServerClient

SPEC = BrowserSessionSpec(metadata={"rollout_id": "rollout-7"})


@pytest_asyncio.fixture
async def provider(farm, installed):
    session = {"viewport": {"width": 640, "height": 480}, "locale": "de-DE"}
    return create_session_provider({"webgym": {"url": farm.url, "session": session}})


def test_provider_is_found_by_its_entry_point() -> None:
    assert "webgym" in list_session_providers()


@pytest.mark.asyncio
async def test_release_may_be_repeated(provider, farm) -> None:
    handle = await provider.acquire(SPEC)
    assert handle.session_id in leases(farm)
    await provider.release(handle)
    await provider.release(handle)
    assert handle.session_id not in leases(farm)


@pytest.mark.asyncio
async def test_release_of_an_ended_lease_is_no_error(provider, farm) -> None:
    handle = await provider.acquire(SPEC)
    session = handle.raw
    await session.release()
    await provider.release(handle)


@pytest.mark.asyncio
async def test_full_farm_is_a_session_error(provider, farm) -> None:
    handles = [await provider.acquire(SPEC) for _ in range(SESSIONS - len(leases(farm)))]
    impatient = create_session_provider({"webgym": {"url": farm.url, "wait_s": 0}})
    with pytest.raises(BrowserSessionError, match=farm.url):
        await impatient.acquire(SPEC)
    for handle in handles:
        await provider.release(handle)


@pytest.mark.asyncio
async def test_unknown_option_is_a_session_error(provider) -> None:
    with pytest.raises(BrowserSessionError, match="no_such_option"):
        await provider.acquire(BrowserSessionSpec(provider_options={"no_such_option": 1}))


@pytest.mark.asyncio
async def test_options_of_the_spec_win(provider) -> None:
    spec = BrowserSessionSpec(provider_options={"viewport": {"width": 800, "height": 600}})
    handle = await provider.acquire(spec)
    assert await handle.raw.viewport() == (800, 600)
    await provider.release(handle)


@pytest.mark.asyncio
async def test_lease_is_logged_with_its_rollout(provider, caplog) -> None:
    with caplog.at_level(logging.INFO, "webgym_rs.nemo_gym"):
        handle = await provider.acquire(SPEC)
    await provider.release(handle)
    assert f"lease {handle.session_id} is held by {{'rollout_id': 'rollout-7'}}" in caplog.messages


def server_client(farm) -> TestClient:
    provider = {"webgym": {"url": farm.url}}
    config = InteractiveBrowserConfig(
        name="interactive_browser",
        host="127.0.0.1",
        port=8080,
        entrypoint="app.py",
        backend={"remote_cdp": {"session_provider": provider}},
    )
    server = InteractiveBrowserResourcesServer(config=config, server_client=MagicMock(spec=ServerClient))
    return TestClient(server.setup_webserver())


EPISODE = {"rollout_id": "rollout", "attempt": 0}
CLOSE = {"resources_session_id": "session", "episode_id": EPISODE}


def seed(client: TestClient, site: str) -> None:
    task = {"initial_url": f"{site}/form.html", "verifier_metadata": {"dom_contains": "welcome neo"}}
    body = {**CLOSE, "task_id": {"taskset": "browser", "task_id": "task"}, "task_data": task}
    assert client.post("/seed_session", json=body).status_code == 200


def test_tools_drive_the_leased_session(farm, site, installed) -> None:
    before = leases(farm)
    with server_client(farm) as client:
        seed(client, site)
        assert len(leases(farm)) == len(before) + 1
        client.post("/browser_observe")
        shown = client.post("/browser_type", json={"element_id": 0, "text": "neo"}).json()
        assert shown["error"] is None, shown
        button = next(line for line in shown["observation"].splitlines() if "button" in line)
        clicked = client.post("/browser_click", json={"element_id": int(button.split("[")[1].split("]")[0])}).json()
        assert "TITLE: Welcome neo" in clicked["observation"]
        assert client.post("/close_session", json=CLOSE).status_code == 200
        assert leases(farm) == before
