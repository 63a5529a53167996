"""A consumer of the stream that `webgym rollout --stream` serves."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import httpx
import msgpack

from .errors import RolloutError, StreamError, StreamUnreachable
from .trajectories import Trajectory
from .trajectories._files import steps_of_journal
from .trajectories._model import trajectory_of_file

if TYPE_CHECKING:
    from typing_extensions import Self

# The server sends something every 10 seconds.
SILENCE_SECONDS = 60.0
REQUEST_SECONDS = 30.0
RECONNECT_PAUSE = 0.5
new_unpacker = cast("Callable[..., Any]", msgpack.Unpacker)  # pyright: ignore[reportUnknownMemberType]


@dataclass
class Item:
    """What the stream delivers at once: a trajectory, or all attempts of a group."""

    cursor: str
    group_id: str | None
    trajectories: list[Trajectory]
    """Equal to those that `wg.load` reads. A group has `env_config.group_size` of them."""
    rewards: list[int | None]
    """The reward of each trajectory; None if it was lost, cancelled or not judged, so that it must be left out."""
    images: list[list[bytes | None]] | None
    """The screenshot of each step of each trajectory, if they were requested."""

    @property
    def trajectory(self) -> Trajectory:
        """The trajectory of an item that has one."""
        (trajectory,) = self.trajectories
        return trajectory

    @property
    def is_complete(self) -> bool:
        """Whether every trajectory has a reward."""
        return None not in self.rewards


@dataclass(frozen=True)
class PauseStatus:
    """Whether policy calls are paused, for how many seconds at most, and how many are still in progress."""

    is_paused: bool
    seconds_left: float | None
    calls_in_flight: int


class TrajectoryStream:
    """Iterates over the items of a stream. Reconnects with its cursor when the connection breaks.

    An item is acknowledged when the next one is requested, or with `acknowledge` if `manual` is set. What is not
    acknowledged is delivered again to the next consumer, and holds back new episodes if `max_staleness` is set.
    """

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        images: bool = False,
        manual: bool = False,
        after: str | None = None,
        reconnect_seconds: float = 60.0,
    ):
        """`after` is the cursor to start after; by default the last one that was acknowledged."""
        headers = {"authorization": f"Bearer {token}"} if token else {}
        timeout = httpx.Timeout(REQUEST_SECONDS, read=SILENCE_SECONDS)
        self._http = httpx.Client(base_url=url, headers=headers, timeout=timeout, trust_env=False)
        self._images, self._manual, self._after = images, manual, after
        self._reconnect_seconds = reconnect_seconds
        self._taken: str | None = None
        self._messages: Iterator[Mapping[str, Any]] | None = None
        self._is_over = False

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Item:
        if not self._manual and self._taken is not None:
            self._acknowledge(self._taken)
            self._taken = None
        if self._is_over:
            raise StopIteration
        message = self._next_message()
        if message["type"] == "end":
            self._end(message)
            raise StopIteration
        item = _item(message)
        self._after = self._taken = item.cursor
        return item

    def _end(self, message: Mapping[str, Any]) -> None:
        self._is_over = True
        if message["reason"] != "finished":
            detail = message.get("detail") or "it can be continued with resume=True (--resume)"
            raise RolloutError(f"the run {message['reason']} before everything was collected: {detail}")

    def _next_message(self) -> Mapping[str, Any]:
        """Returns the next item or the end."""
        give_up: float | None = None
        while True:
            try:
                if self._messages is None:
                    self._messages = self._read()
                for message in self._messages:
                    if message["type"] == "error":
                        raise RolloutError(message["detail"])
                    if message["type"] != "heartbeat":
                        return message
                    give_up = None
                # The response ended without saying that the run has ended.
                self._messages = None
            except httpx.TransportError as error:
                self._messages = None
                give_up = time.monotonic() + self._reconnect_seconds if give_up is None else give_up
                self._wait_to_reconnect(give_up, error)

    def _wait_to_reconnect(self, give_up: float, error: httpx.TransportError) -> None:
        if time.monotonic() >= give_up:
            raise StreamUnreachable(f"the stream at {self._http.base_url} cannot be reached: {error}") from error
        time.sleep(RECONNECT_PAUSE)

    def _read(self) -> Iterator[Mapping[str, Any]]:
        parameters = {"images": "true" if self._images else "false", **({"after": self._after} if self._after else {})}
        headers = {"accept": "application/msgpack"}
        with self._http.stream("GET", "/stream", params=parameters, headers=headers) as response:
            if response.status_code != 200:
                response.read()
                raise _error(response)
            unpacker = new_unpacker(raw=False, strict_map_key=False, max_buffer_size=0)
            for chunk in response.iter_raw():
                unpacker.feed(chunk)
                yield from unpacker

    def acknowledge(self, item: Item) -> None:
        """Acknowledges an item and all earlier ones."""
        self._acknowledge(item.cursor)

    def _acknowledge(self, cursor: str) -> None:
        give_up = time.monotonic() + self._reconnect_seconds
        while True:
            try:
                self._post("/ack", {"cursor": cursor})
                return
            except httpx.TransportError as error:
                self._wait_to_reconnect(give_up, error)

    def pause(self, deadline: float | None = None, *, wait: bool = True) -> PauseStatus:
        """Stops policy calls while browsers stay open. With `wait`, returns when none is in progress any more.

        After `deadline` seconds (300 unless given) the run goes on by itself, with a warning in its log.
        """
        # Waiting takes as long as the slowest call.
        timeout = (deadline if deadline is not None else 300.0) + REQUEST_SECONDS
        return _pause_status(self._post("/pause", {"deadline": deadline, "wait": wait}, timeout=timeout))

    def resume(self) -> PauseStatus:
        """Lets policy calls go on."""
        return _pause_status(self._post("/resume", {}))

    @contextmanager
    def paused(self, deadline: float | None = None) -> Generator[PauseStatus, None, None]:
        """Pauses policy calls during a `with` block, for example to send new weights to the policy server."""
        status = self.pause(deadline)
        try:
            yield status
        finally:
            self.resume()

    def status(self) -> dict[str, Any]:
        """Returns how far the stream is (docs/streaming.md)."""
        response = self._http.get("/status")
        if response.status_code != 200:
            raise _error(response)
        return response.json()

    def _post(self, path: str, body: Mapping[str, Any], *, timeout: float = REQUEST_SECONDS) -> dict[str, Any]:
        response = self._http.post(path, json=body, timeout=timeout)
        if response.status_code != 200:
            raise _error(response)
        return response.json()

    def close(self) -> None:
        """Closes the connections. The run goes on."""
        self._messages = None
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class SupervisedStream(TrajectoryStream):
    """The stream of a run that this process started. `check` raises when the run has ended."""

    def __init__(self, url: str, token: str, check: Callable[[], None], *, images: bool, manual: bool):
        super().__init__(url, token=token, images=images, manual=manual)
        self._check = check

    def _wait_to_reconnect(self, give_up: float, error: httpx.TransportError) -> None:
        self._check()
        super()._wait_to_reconnect(give_up, error)


def _pause_status(body: Mapping[str, Any]) -> PauseStatus:
    return PauseStatus(body["is_paused"], body["pause_seconds_left"], body["policy_calls_in_flight"])


def _error(response: httpx.Response) -> StreamError:
    try:
        detail = str(response.json()["detail"])
    except (ValueError, KeyError, TypeError):
        detail = response.text[:200]
    return StreamError(detail, response.status_code)


def _item(message: Mapping[str, Any]) -> Item:
    sent: list[Mapping[str, Any]] = message["trajectories"] if message["type"] == "group" else [message["trajectory"]]
    images = [one["images"] for one in sent] if "images" in sent[0] else None
    rewards: list[int | None] = [one["reward"] for one in sent]
    return Item(message["cursor"], sent[0]["group_id"], [_trajectory(one) for one in sent], rewards, images)


def _trajectory(sent: Mapping[str, Any]) -> Trajectory:
    index: int = sent["trajectory_index"]
    if not sent["steps"]:
        return Trajectory(sent["split"], sent["iteration"], index, [], sent["metadata"])
    if sent["is_masked"]:
        # As in the files, where `is_masked` says that a reward does not count.
        for step in sent["steps"]:
            step["reward"]["reward"] = 0
    return trajectory_of_file(steps_of_journal(sent), sent["split"], sent["iteration"], index)
