"""A pytest plugin that runs BrowserGym's own tests, unmodified, on a farm.

Their fixture `playwright` (of pytest-playwright, which is not installed) gives BrowserGym the Playwright object; here it
is the one that leases sessions. Pages come from loopback: MiniWoB's from its package, and `file:` pages of the tests
from a server, because a farm opens no files.
"""

import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from pages import FileServer, OfflineProxy

import webgym_rs as wg
from webgym_rs.browsergym import FarmPlaywright, serve_miniwob, use_farm

SESSIONS = 4
left: list[str] = []


def leases(farm: wg.Farm) -> list[str]:
    return [instance for node in farm.info()["nodes"] for instance in node["instances"]]


@pytest.fixture(scope="session")
def webgym_farm() -> Iterator[wg.Farm]:
    with wg.serve(SESSIONS, arguments=["--allow-private-network"]) as farm:
        yield farm


# BrowserGym's tests ask for this fixture in a package's __init__.py, which pytest reads in some layouts only.
@pytest.fixture(scope="session", autouse=True)
def playwright(webgym_farm: wg.Farm) -> Iterator[FarmPlaywright]:
    proxy = OfflineProxy()
    with serve_miniwob(), use_farm(webgym_farm, proxy={"server": proxy.url}) as playwright:
        yield playwright


@cache
def file_server() -> FileServer:
    return FileServer(Path(os.environ["BROWSERGYM_TESTS"]))


def over_http(value: object) -> object:
    """Returns the URL that serves a `file:` URL; other values as they are."""
    if isinstance(value, str) and value.startswith("file://"):
        return file_server().url_of(Path(urlsplit(value).path))
    return value


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        callspec = getattr(item, "callspec", None)
        for arguments in (callspec.params, callspec.funcargs) if callspec else ():
            arguments.update({name: over_http(value) for name, value in arguments.items()})


@pytest.fixture(autouse=True)
def pages_over_http(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in list(vars(request.module).items()):
        monkeypatch.setattr(request.module, name, over_http(value))


@pytest.fixture(autouse=True)
def released_after_test(
    request: pytest.FixtureRequest, webgym_farm: wg.Farm, playwright: FarmPlaywright
) -> Iterator[None]:
    """Releases what a test leaves behind: some of BrowserGym's tests do not close their environment."""
    yield
    if leases(webgym_farm):
        left.append(request.node.nodeid)
        playwright.chromium.close_all(interrupted=False)
    assert leases(webgym_farm) == []


def pytest_terminal_summary(terminalreporter) -> None:
    names = f": {', '.join(left)}" if left else ""
    terminalreporter.write_line(f"{len(left)} tests ended without closing their environment{names}")
