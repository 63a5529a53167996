"""Starts and stops what the checks need: processes, a farm, rollouts. Everything it starts ends with this process."""

import atexit
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import traceback
import urllib.error
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "target" / "trainers"
COLLECTED = OUT / "collected"  # written by collect_mixed.py
WEBGYM = Path(os.environ.get("WEBGYM", ROOT / "target" / "release" / "webgym"))

running: list["Process"] = []


class CheckFailed(Exception):
    """A check failed. The message says which one, with the values."""


def check(condition: object, message: str) -> None:
    if not condition:
        raise CheckFailed(message)


def phase(text: str) -> None:
    print(f"test-trainers: {text}", flush=True)


def run_checks(*checks) -> None:
    """Runs every check, also after one that failed, and reports each failure. Exits with 1 if there was one."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    # A shell starts background processes with SIGINT ignored, which our children would inherit.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    failed = 0
    for one in checks:
        try:
            one()
        except CheckFailed as failure:
            failed += 1
            print(f"test-trainers: FAILED: {failure}", file=sys.stderr, flush=True)
        except KeyboardInterrupt:
            sys.exit(130)
        except Exception:
            failed += 1
            traceback.print_exc()
            print("test-trainers: FAILED: see the traceback above", file=sys.stderr, flush=True)
    sys.exit(1 if failed else 0)


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
        logs = OUT / "logs"
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

    def signal(self, number: int) -> None:
        if self.child.poll() is None:
            self.child.send_signal(number)

    def wait(self, seconds: float) -> int:
        try:
            return self.child.wait(seconds)
        except subprocess.TimeoutExpired:
            self.stop()
            raise CheckFailed(f"{self.name} did not end within {seconds} s:\n{self.last_lines()}") from None

    def wait_until(self, is_ready, seconds: float, what: str):
        """Waits until `is_ready()` returns something true, and returns that."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if found := is_ready():
                return found
            if self.child.poll() is not None:
                raise CheckFailed(f"{self.name} ended with {self.child.returncode} before {what}:\n{self.last_lines()}")
            time.sleep(0.2)
        raise CheckFailed(f"{self.name}: no {what} within {seconds} s:\n{self.last_lines()}")

    def stop(self) -> None:
        for number, seconds in [(signal.SIGTERM, 20), (signal.SIGKILL, 5)]:
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


def run(
    name: str, command: list, env: dict | None = None, cwd: Path | None = None, seconds: float = 600
) -> tuple[int, str]:
    """Runs a command to its end. Returns its exit code and its output."""
    with Process(name, command, env, cwd) as process:
        return process.wait(seconds), process.log()


def run_ok(name: str, command: list, env: dict | None = None, cwd: Path | None = None, seconds: float = 600) -> str:
    """Runs a command that must succeed. Returns its output."""
    code, output = run(name, command, env, cwd, seconds)
    last = "\n".join(output.splitlines()[-15:])
    check(code == 0, f"{name} ended with exit code {code}; its last lines:\n{last}")
    return output


def start_farm(instances: int) -> tuple[Process, int]:
    """Starts `webgym serve` for loopback pages. Returns the process and the port of its master."""
    farm = Process(
        "farm",
        [WEBGYM, "serve", instances, "--master-port=0", "--node-port=0", "--allow-private-network", "--no-mirror"],
    )
    events = lambda: [json.loads(line) for line in farm.log().splitlines() if line.startswith("{")]
    farm.wait_until(lambda: any(event["event"] == "ready" for event in events()), 60, "browsers")
    return farm, next(event["port"] for event in events() if event.get("tier") == "master")


def rollout_command(
    save_path: Path, tasks: Path, farm_port: int, policy_url: str, *more: str, split: str = "train"
) -> list:
    """Returns the command of a rollout of all tasks of the file, on the given farm."""
    size = sum(1 for line in tasks.read_text().splitlines() if line)
    own = {
        "save_path": f"'{save_path}'",
        "data_path": f"'{tasks.parent}'",
        f"env_config.{split}_tasks": tasks.name,
        f"env_config.{split}_tasks_rollout_size": size,
        "env_config.host_ip": "127.0.0.1",
        "env_config.master_port": farm_port,
        "env_config.vllm_server_url": policy_url,
        "env_config.server_size": 3,
        "env_config.monitor_port": "null",
        "env_config.completion_threshold": 1,
        "seed": 7,
    }
    settings = [f"{key}={value}" for key, value in own.items()]
    return [WEBGYM, "rollout", f"--config-name=rollout_{split}", *settings, *more]


def request(url: str, body: dict | None = None, key: str | None = None, seconds: float = 120) -> tuple[int, str]:
    """Sends a GET, or a POST with a JSON body. Returns the status and the body of the response, also of an error."""
    headers = {"content-type": "application/json"} | ({"authorization": f"Bearer {key}"} if key else {})
    data = None if body is None else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=seconds) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError:
        return 0, ""
