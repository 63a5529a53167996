"""Starts a farm and calls its HTTP API: leases and commands."""

import atexit
import json
import os
import signal
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

API_KEY = "default_key"
REQUEST_SECONDS = 120


class FarmError(Exception):
    """The farm refused a request or did not answer it."""


class Farm:
    """A `webgym serve` process with all instances in one browser process. It ends with this process."""

    def __init__(self, webgym: Path, instances: int, log: Path):
        self.log = log
        options = ["--master-port=0", "--node-port=0", "--allow-private-network", "--no-mirror"]
        command = [str(webgym), "serve", str(instances), f"--instances-per-browser={instances}", *options]
        with open(log, "wb") as output:
            self.process = subprocess.Popen(
                command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True
            )
        atexit.register(self.stop)
        ports = self._wait_ready(60)
        self.url, self.node_url = (f"http://127.0.0.1:{ports[tier]}" for tier in ("master", "node"))

    def _wait_ready(self, seconds: float) -> dict[str, int]:
        """Waits until the browsers are ready. Returns the ports of master and node."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and self.process.poll() is None:
            lines = self.log.read_text(errors="replace").splitlines()
            events = [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]
            if any(event.get("event") == "ready" for event in events):
                return {event["tier"]: event["port"] for event in events if "tier" in event}
            time.sleep(0.2)
        raise FarmError(f"the farm is not ready; see {self.log}")

    def stop(self) -> None:
        for number, seconds in [(signal.SIGTERM, 20), (signal.SIGKILL, 5)]:
            if self.process.poll() is not None:
                return
            os.killpg(self.process.pid, number)
            try:
                self.process.wait(seconds)
            except subprocess.TimeoutExpired:
                continue

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


class Session:
    """A lease and the browser session that it drives. Records the commands since `trace` was last cleared."""

    def __init__(self, farm: Farm, options: dict | None = None):
        self.farm = farm
        self.lease = json.loads(farm.request("POST", "/get", {"lifetime_mins": 10, "wait_secs": 60}, options))
        self.trace: list[dict] = []

    def execute(self, command: str, **arguments) -> dict:
        self.trace.append({command: arguments})
        return json.loads(self.farm.request("POST", "/execute", body={**self.lease, command: arguments}))

    def screenshot(self) -> bytes:
        return self.farm.request("GET", "/screenshot", {**self.lease, "interaction_mode": "coordinates"})

    def release(self) -> None:
        self.farm.request("POST", "/reset", self.lease)
