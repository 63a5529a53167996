"""Starts a farm and calls its HTTP API: leases and commands."""

import json
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

from process import CheckFailed, Process

API_KEY = "default_key"
REQUEST_SECONDS = 120


class FarmError(CheckFailed):
    """The farm refused a request or did not answer it."""


class Farm:
    """A `webgym serve` process for loopback pages, with all instances in one browser process. It ends with this process."""

    def __init__(self, webgym: Path, instances: int, log: Path):
        options = ["--master-port=0", "--node-port=0", "--allow-private-network", "--no-mirror"]
        command = [webgym, "serve", instances, f"--instances-per-browser={instances}", *options]
        self.process = Process(log, command)
        self.process.wait_until(lambda: any(event["event"] == "ready" for event in self.events()), 60, "browsers")
        ports = {event["tier"]: event["port"] for event in self.events() if "tier" in event}
        self.port = ports["master"]
        self.url, self.node_url = (f"http://127.0.0.1:{ports[tier]}" for tier in ("master", "node"))

    def events(self) -> list[dict]:
        lines = self.process.log().splitlines()
        return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]

    def stop(self) -> None:
        self.process.stop()

    def request(
        self, method: str, path: str, query: dict | None = None, body: dict | None = None, server: str | None = None
    ) -> bytes:
        """Calls the master, or another server of the farm."""
        url = f"{server or self.url}{path}" + (f"?{urllib.parse.urlencode(query)}" if query else "")
        headers = {"x-api-key": API_KEY, "content-type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(url, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=REQUEST_SECONDS) as response:
                return response.read()
        except urllib.error.HTTPError as error:
            raise FarmError(f"{path}: {error.code} {error.read().decode(errors='replace')}") from None
        except OSError as error:
            raise FarmError(f"{path}: {error}") from None

    def post(self, path: str, body: dict) -> dict:
        return json.loads(self.request("POST", path, body=body))


class Session:
    """A lease and the browser session that it drives. Records the commands since `trace` was last cleared."""

    def __init__(self, farm: Farm, options: dict | None = None):
        self.farm = farm
        self.lease = json.loads(farm.request("POST", "/get", {"lifetime_mins": 30, "wait_secs": 60}, options))
        self.trace: list[dict] = []

    def execute(self, command: str, **arguments) -> dict:
        self.trace.append({command: arguments})
        return self.farm.post("/execute", {**self.lease, command: arguments})

    def step(self, command: dict) -> dict:
        """Executes a command and observes the page, in set-of-marks mode."""
        body = {"command": command, "interaction_mode": "set_of_marks", "include": ["screenshot", "rects"]}
        return self.farm.post("/step", self.lease | body)

    def observe(self) -> dict:
        """Returns the interactive elements as they are now, without a screenshot."""
        body = {"interaction_mode": "set_of_marks", "include": ["rects"]}
        return self.farm.post("/observe", self.lease | body)["screenshot_info"]

    def screenshot(self) -> bytes:
        return self.farm.request("GET", "/screenshot", {**self.lease, "interaction_mode": "coordinates"})

    def release(self) -> None:
        self.farm.request("POST", "/reset", self.lease)

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_) -> None:
        self.release()
