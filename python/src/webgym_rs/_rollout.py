"""Runs `webgym rollout` as a supervised child and consumes its stream."""

from __future__ import annotations

import secrets
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

from ._process import STOP_SECONDS, SupervisedProcess
from ._stream import Item, PauseStatus, SupervisedStream
from .errors import RolloutError

if TYPE_CHECKING:
    from typing_extensions import Self

# A signal that comes too early after another one is not noticed.
SIGNAL_PAUSE = 0.5
# Writing the file of an iteration takes a few seconds.
FINISH_SECONDS = 600


class _RolloutProcess(SupervisedProcess):
    def __init__(self, command: Sequence[str], token: str):
        self.listening = threading.Event()
        self.url: str | None = None
        self.result: Mapping[str, Any] | None = None
        super().__init__(command, {"WEBGYM_STREAM_TOKEN": token})

    def on_event(self, event: Mapping[str, Any]) -> None:
        if event.get("tier") == "stream":
            self.url = event["url"]
            self.listening.set()
        if event["event"] == "finished":
            self.result = event

    def on_end(self) -> None:
        self.listening.set()

    def stop(self) -> None:
        """Stops the run at once: the first signal lets episodes finish, the next one does not."""
        end = time.monotonic() + STOP_SECONDS
        while self.status() is None and time.monotonic() < end:
            self._process.send_signal(signal.SIGTERM)
            try:
                self.wait(SIGNAL_PAUSE)
            except subprocess.TimeoutExpired:
                continue
        super().stop()


class Rollout:
    """A running `webgym rollout`. It ends with this process, however that ends.

    With `stream`, iterating gives the items of its stream. Finished trajectories stay on disk in any case, and
    `rollout(..., resume=True)` continues a run that was stopped.
    """

    def __init__(self, command: Sequence[str], *, stream: bool, images: bool, manual: bool, ready_seconds: float):
        token = secrets.token_urlsafe(24)
        self._is_manual = manual
        self._process = _RolloutProcess(command, token)
        self._stream: SupervisedStream | None = None
        if stream:
            url = self._wait_for_address(ready_seconds)
            self._stream = SupervisedStream(url, token, self._check_running, images=images, manual=manual)

    def _wait_for_address(self, seconds: float) -> str:
        if not self._process.listening.wait(seconds):
            raise self._failure(f"webgym rollout did not start within {seconds:g} s")
        if self._process.url is None:
            raise self._failure(f"webgym rollout ended with status {self._process.wait()}")
        return self._process.url

    def _failure(self, reason: str) -> RolloutError:
        """Ends the program and returns the error, with the end of its log."""
        log = self._process.log_end()
        self._process.stop()
        return RolloutError(f"{reason}. Its log:\n{log}")

    def _check_running(self) -> None:
        status = self._process.status()
        if status is not None:
            raise self._failure(f"webgym rollout ended with status {status} before everything was delivered")

    @property
    def stream(self) -> SupervisedStream:
        """The stream; an error for a run that was started without one."""
        if self._stream is None:
            raise RolloutError("the run has no stream; start it with stream=True")
        return self._stream

    @property
    def pid(self) -> int:
        return self._process.pid

    def __iter__(self) -> Iterator[Item]:
        """Iterates over the items. Returns when the run has ended and its file is written.

        With `manual` it returns after the last item, because the run waits until that is acknowledged.
        """
        yield from self.stream
        if not self._is_manual:
            self.wait()

    def acknowledge(self, item: Item) -> None:
        """Acknowledges an item and all earlier ones; needed only with `manual`."""
        self.stream.acknowledge(item)

    def pause(self, deadline: float | None = None, *, wait: bool = True) -> PauseStatus:
        """Stops policy calls while browsers stay open; see `TrajectoryStream.pause`."""
        return self.stream.pause(deadline, wait=wait)

    def resume(self) -> PauseStatus:
        """Lets policy calls go on."""
        return self.stream.resume()

    def paused(self, deadline: float | None = None) -> AbstractContextManager[PauseStatus]:
        """Pauses policy calls during a `with` block."""
        return self.stream.paused(deadline)

    def status(self) -> dict[str, Any]:
        """Returns how far the stream is (docs/streaming.md)."""
        return self.stream.status()

    def wait(self, seconds: float | None = None) -> Mapping[str, Any]:
        """Waits until the run has ended. Returns its result: file, number of trajectories and metrics.

        A run that was stopped or failed is a `RolloutError`. With a stream, all items must have been acknowledged, or the
        run waits for that first (`env_config.stream_linger`).
        """
        limit = FINISH_SECONDS if seconds is None and self._stream is not None else seconds
        status = self._process.wait(limit)
        if status != 0:
            raise self._failure(f"webgym rollout ended with status {status}")
        return self._process.result or {}

    def close(self) -> None:
        """Ends the run if it has not ended, and waits for it. What is finished stays on disk."""
        if self._stream is not None:
            self._stream.close()
        self._process.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def rollout(
    config_name: str = "rollout_train",
    overrides: Sequence[str] = (),
    *,
    config_path: str | PathLike[str] | None = None,
    stream: bool = True,
    images: bool = False,
    manual: bool = False,
    resume: bool = False,
    arguments: Sequence[str] = (),
    ready_seconds: float = 300.0,
) -> Rollout:
    """Starts `webgym rollout` and returns it.

    `overrides` are settings such as `"save_path=runs/first"`, `arguments` further options of the program. With `images`,
    items have the bytes of screenshots, not only their paths. With `manual`, items count as taken when `acknowledge` says
    so, not when the next one is requested. `resume` continues an unfinished run of the save path.
    """
    command = ["rollout", f"--config-name={config_name}"]
    command += [f"--config-path={fspath(config_path)}"] if config_path is not None else []
    command += ["--stream", "--stream-port=0"] if stream else []
    command += ["--resume"] if resume else []
    command += [*arguments, *overrides]
    return Rollout(command, stream=stream, images=images, manual=manual, ready_seconds=ready_seconds)
