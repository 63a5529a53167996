"""Starts and stops what the measurement needs: applications, a farm, sessions. Everything it starts ends with this process."""

import atexit
import json
import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "target" / "apps"
RUN = Path(os.environ.get("RUN", OUT / "run"))  # the logs, data and results of this run
WEBGYM = Path(os.environ.get("WEBGYM", ROOT / "target" / "release" / "webgym"))
API_KEY = "default_key"

running: list["Process"] = []


class CheckFailed(Exception):
    """A check failed. The message says which one, with the values."""


def phase(text: str) -> None:
    print(f"test-apps: {text}", flush=True)


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def empty_folder(path: Path) -> Path:
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    return path


class Process:
    """A child in its own process group, with its output in a file. `stop` ends the whole group."""

    def __init__(self, name: str, command: list, env: dict | None = None, cwd: Path | None = None):
        logs = RUN / "logs"
        logs.mkdir(parents=True, exist_ok=True)
        self.name, self.log_path = name, logs / f"{name}.log"
        with open(self.log_path, "wb") as log:
            self.child = subprocess.Popen(
                [str(part) for part in command],
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env={**os.environ, **(env or {})},
                cwd=cwd,
                start_new_session=True,
            )
        running.append(self)

    def log(self) -> str:
        return self.log_path.read_text(errors="replace")

    def last_lines(self, count: int = 15) -> str:
        return "\n".join(self.log().splitlines()[-count:])

    def wait_until(self, is_ready, seconds: float, what: str):
        """Waits until `is_ready()` returns something true, and returns that."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if found := is_ready():
                return found
            if self.child.poll() is not None:
                raise CheckFailed(f"{self.name} ended with {self.child.returncode} before {what}:\n{self.last_lines()}")
            time.sleep(0.1)
        raise CheckFailed(f"{self.name}: no {what} within {seconds} s:\n{self.last_lines()}")

    def stop(self) -> None:
        for number, seconds in [(signal.SIGTERM, 5), (signal.SIGKILL, 5)]:
            try:
                os.killpg(self.child.pid, number)
                self.child.wait(seconds)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                continue
        if self in running:
            running.remove(self)

    def __enter__(self) -> "Process":
        return self

    def __exit__(self, *_) -> None:
        self.stop()


@atexit.register
def stop_everything() -> None:
    for process in list(running):
        process.stop()


def is_answering(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=10) as response:
            return response.status == 200
    except OSError:
        return False


class Farm:
    """`webgym serve` for loopback pages."""

    def __init__(self, instances: int):
        options = ["--master-port=0", "--node-port=0", "--allow-private-network", "--no-mirror"]
        self.process = Process("farm", [WEBGYM, "serve", instances, *options])
        self.process.wait_until(lambda: any(event["event"] == "ready" for event in self.events()), 60, "browsers")
        port = next(event["port"] for event in self.events() if event.get("tier") == "master")
        self.url = f"http://127.0.0.1:{port}"

    def events(self) -> list[dict]:
        return [json.loads(line) for line in self.process.log().splitlines() if line.startswith("{")]

    def post(self, path: str, body: dict | None = None) -> dict:
        headers = {"content-type": "application/json", "x-api-key": API_KEY}
        data = json.dumps(body or {}).encode()
        try:
            with urllib.request.urlopen(urllib.request.Request(self.url + path, data, headers), timeout=120) as response:
                return json.load(response)
        except urllib.error.HTTPError as error:
            raise CheckFailed(f"{path} returned {error.code}: {error.read().decode()}") from None


class Session:
    """A leased browser session, driven by `/step` in set-of-marks mode."""

    def __init__(self, farm: Farm):
        self.farm = farm
        self.lease = farm.post("/get?lifetime_mins=30&wait_secs=60")

    def step(self, command: dict) -> dict:
        body = {"command": command, "interaction_mode": "set_of_marks", "include": ["screenshot", "rects"]}
        return self.farm.post("/step", self.lease | body)

    def observe(self) -> dict:
        """Returns the interactive elements as they are now, without a screenshot."""
        body = {"interaction_mode": "set_of_marks", "include": ["rects"]}
        return self.farm.post("/observe", self.lease | body)["screenshot_info"]

    def release(self) -> None:
        self.farm.post(f"/reset?{urllib.parse.urlencode(self.lease)}")

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_) -> None:
        self.release()
