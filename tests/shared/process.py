"""Starts processes for checks. Everything that it starts ends with this process."""

import atexit
import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

running: list["Process"] = []


class CheckFailed(Exception):
    """A check failed. The message says which one, with the values."""


def check(condition: object, message: str) -> None:
    if not condition:
        raise CheckFailed(message)


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def empty_folder(path: Path) -> Path:
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    return path


class Process:
    """A child in its own process group, with its output in `log_path`. `stop` ends the whole group."""

    def __init__(self, log_path: Path, command: list, env: dict | None = None, cwd: Path | None = None):
        log_path.parent.mkdir(parents=True, exist_ok=True)
        self.name, self.log_path = log_path.stem, log_path
        with open(log_path, "wb") as log:
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
            time.sleep(0.1)
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
