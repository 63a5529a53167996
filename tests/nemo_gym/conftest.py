"""Replaces the conftest.py of NeMo Gym's interactive browser environment, whose tests then run on a farm, unmodified.

Where the contract tests select the provider `static_cdp`, they get ours, found by its entry point. Their `file:` pages
are served over HTTP, because a farm opens no files.
"""

import os
import sys
import threading
import tomllib
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import webgym_rs as wg

SESSIONS = 4
SOURCE = Path(os.environ["WEBGYM_PYTHON"])


class Handler(SimpleHTTPRequestHandler):
    def log_message(self, *_) -> None:
        pass


@pytest.fixture(scope="session", autouse=True)
def installed(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Makes the entry points of the package visible, which is on the path but not installed."""
    project = tomllib.loads((SOURCE / "pyproject.toml").read_text())["project"]
    folder = tmp_path_factory.mktemp("installed") / "webgym_rs-0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: webgym-rs\nVersion: 0\n")
    groups = project["entry-points"].items()
    text = "".join(f"[{group}]\n" + "".join(f"{n} = {v}\n" for n, v in points.items()) for group, points in groups)
    (folder / "entry_points.txt").write_text(text)
    sys.path.append(str(folder.parent))


@pytest.fixture(scope="session")
def farm() -> Iterator[wg.Farm]:
    with wg.serve(SESSIONS, arguments=["--allow-private-network"]) as farm:
        os.environ["WEBGYM_API_KEY"] = farm._process.api_key
        yield farm


@pytest.fixture(scope="session")
def cdp_endpoint(farm: wg.Farm) -> Iterator[str]:
    with farm.lease() as session:
        yield session.cdp_url


@pytest.fixture(scope="session")
def site() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(Path(__file__).parent / "site")))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def leases(farm: wg.Farm) -> list[str]:
    return [instance for node in farm.info()["nodes"] for instance in node["instances"]]


@pytest.fixture(autouse=True)
def contract_on_farm(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, farm: wg.Farm, cdp_endpoint: str, site: str
) -> Iterator[None]:
    if request.module.__name__ != "test_backend_contract":
        yield
        return
    from browser import registry

    provider = registry.get_session_provider_class("webgym")

    class ProviderOfContract(provider):
        def __init__(self, cdp_url: str):
            super().__init__(url=farm.url)

    monkeypatch.setitem(registry._PROVIDER_REGISTRY, "static_cdp", ProviderOfContract)
    monkeypatch.setattr(request.module, "_url", lambda page: f"{site}/{page}")
    before = leases(farm)
    yield
    assert leases(farm) == before, "the test ended with a lease"
