# Generated from _client_async.py by tools/make_sync.py. Do not edit.
"""A farm and its browser sessions, for blocking code."""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import httpx

from . import _calls, commands
from ._calls import Call, Dialect, ImageFormat, Include, InteractionMode, Lease, Response
from ._farm_process import FarmProcess
from ._io_sync import HttpClient, current_loop, run_blocking, sleep, started
from ._keeper import LeaseKeeper
from .commands import CommandLike
from .errors import FarmUnreachable, InfrastructureError, InvalidInstance, NotInUse
from .observations import ComputerResult, File, Observation, PageMetadata, Screenshot, Tab

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from .options import SessionOptions

T = TypeVar("T")
DEFAULT_INCLUDE: tuple[Include, ...] = ("screenshot", "metadata")
# The farm closes connections that are idle for longer.
IDLE_CONNECTION_SECONDS = 30
RETRY_PAUSES = (0.1, 0.5, 1.0)
SESSIONS_PER_POOL = 8


class _Slot:
    """A session's share of a pool of connections; it ends with the session."""

    __slots__ = ("__weakref__", "http")

    def __init__(self, http: HttpClient):
        self.http = http


class _Pool:
    """The connections of a few sessions. For each request, httpx looks at every connection of a pool."""

    def __init__(self, http: HttpClient):
        self.http = http
        self.slots: weakref.WeakSet[_Slot] = weakref.WeakSet()


class Farm:
    """A connection to a farm. Close it, or use it with `with`.

    `api_key` is by default that of WEBGYM_API_KEY or, for a farm on this machine, the built-in one. `timeout` is the
    number of seconds that a request may take. A farm belongs to the process that made it, and to the event loop that used
    it first.
    """

    _closed = False
    _loop: object = None

    def __init__(self, url: str, *, api_key: str | None = None, timeout: float = 120.0):
        if not url.startswith(("http://", "https://")):
            raise ValueError(f"the URL of the farm is {url!r}; it must begin with http:// or https://")
        self._owner = os.getpid()
        self._process: FarmProcess | None = None
        self._stop_process: Any = None
        self._timeout = timeout
        self._connect(url, api_key or os.environ.get("WEBGYM_API_KEY") or "default_key")

    @classmethod
    def _of_process(cls, process: FarmProcess, timeout: float) -> Self:
        """Returns a farm whose process is about to become ready."""
        farm = cls.__new__(cls)
        farm._owner, farm._process, farm._timeout, farm._pools = os.getpid(), process, timeout, []
        farm._stop_process = weakref.finalize(farm, process.stop)
        return farm

    def _connect(self, url: str, api_key: str) -> None:
        self.url, self._api_key = url.rstrip("/"), api_key
        # A farm that this process has started ends with it.
        self._keeper = LeaseKeeper(self.url, api_key, has_reaper=self._process is None)
        # Made once: reading the certificates takes longer than a request.
        self._verify = httpx.create_ssl_context() if self.url.startswith("https:") else False
        self._pools: list[_Pool] = [_Pool(self._new_http())]

    def _new_http(self) -> HttpClient:
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=None, keepalive_expiry=IDLE_CONNECTION_SECONDS)
        headers = {"x-api-key": self._api_key, "content-type": "application/json"}
        return HttpClient(
            base_url=self.url,
            headers=headers,
            timeout=self._timeout,
            limits=limits,
            trust_env=False,
            verify=self._verify,
        )

    def _new_slot(self) -> _Slot:
        """Returns a slot of the first pool that has room, so that connections are used again."""
        pool = next((pool for pool in self._pools if len(pool.slots) < SESSIONS_PER_POOL), None)
        if pool is None:
            pool = _Pool(self._new_http())
            self._pools.append(pool)
        slot = _Slot(pool.http)
        pool.slots.add(slot)
        return slot

    def _check_usable(self) -> None:
        """Connections cannot be shared by processes or event loops."""
        if os.getpid() != self._owner:
            raise RuntimeError(f"this farm was made by the process {self._owner}; make a Farm of its own after a fork")
        if self._closed:
            raise RuntimeError("the farm is closed; make another one")
        self._loop = self._loop or current_loop()
        if self._loop is not current_loop():
            raise RuntimeError("this farm was used in another event loop; make a Farm in each of them")

    def wait_ready(self) -> None:
        """Waits until a farm that `serve` started is ready. Requests do this by themselves."""
        if not self._pools and self._process is not None:
            url = run_blocking(self._process.wait_ready)
            if not self._pools:
                self._connect(url, self._process.api_key)

    def lease(
        self,
        *,
        minutes: int = 60,
        wait: float = 60.0,
        keep_alive: bool = True,
        **options: Unpack[SessionOptions],
    ) -> Session:
        """Acquires a browser session.

        The lease ends after `minutes` without a request; while the session object exists, it is renewed in the
        background, unless `keep_alive` is false. If all sessions are leased, waits `wait` seconds for one, and then
        raises `NoCapacity`. The other arguments are session options, such as `viewport` or `locale`.
        """
        return self._acquire(minutes, wait, keep_alive, options)

    def _acquire(self, minutes: int, wait: float, keep_alive: bool, options: Mapping[str, Any]) -> Session:
        return self._start(_calls.acquire(minutes, wait, options), minutes, keep_alive)

    def _start(self, call: Call[Lease], minutes: int, keep_alive: bool) -> Session:
        self._check_usable()
        self.wait_ready()
        slot = self._new_slot()
        lease = self.send(call, slot.http)
        self._keeper.add(lease, minutes, keep_alive)
        return Session(self, lease, slot)

    def info(self) -> dict[str, Any]:
        """Returns the nodes of the farm with their capacity and leases."""
        return self.send(_calls.info())

    def send(self, call: Call[T], http: HttpClient | None = None) -> T:
        """Sends a call. What did not reach the farm is sent again; what may have reached it, only if it is repeatable."""
        self._check_usable()
        self.wait_ready()
        deadline = time.monotonic() + self._timeout + call.extra_seconds
        for pause in (*RETRY_PAUSES, None):
            try:
                return call.parse(self._request(call, http or self._pools[0].http))
            except httpx.HTTPError as error:
                repeatable = call.repeatable or isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout))
                if pause is None or not repeatable or time.monotonic() + pause > deadline:
                    reason = f"{type(error).__name__}: {error}".rstrip(": ")
                    raise FarmUnreachable(f"{call.method} {self.url}{call.path} failed: {reason}") from error
                sleep(pause)
        raise AssertionError("unreachable")

    def _request(self, call: Call[Any], http: HttpClient) -> Response:
        response = http.request(
            call.method,
            call.path,
            params=call.query or None,
            content=call.body,
            headers={"accept": call.accept},
            timeout=self._timeout + call.extra_seconds,
        )
        media_type = response.headers.get("content-type", "").partition(";")[0]
        return Response(response.status_code, response.content, media_type)

    def close(self) -> None:
        """Releases the leases of this client and closes its connections. A farm started by `serve` is stopped.

        Can be called repeatedly. Does nothing in a process that was forked from the owner.
        """
        if os.getpid() != self._owner:
            return
        self._closed = True
        if self._pools:
            run_blocking(self._keeper.close)
        if self._loop is current_loop():
            # The connections of another event loop ended with it.
            for pool in self._pools:
                pool.http.close()
        if self._stop_process is not None:
            run_blocking(self._stop_process)

    def __enter__(self) -> Self:
        try:
            self.wait_ready()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Session:
    """A leased browser session. `release` it, or use it with `with`; a forgotten one is released, too."""

    def __init__(self, farm: Farm, lease: Lease, slot: _Slot):
        self._farm = farm
        self._http = slot.http
        self._slot: _Slot | None = slot
        self._keeper = farm._keeper  # pyright: ignore[reportPrivateUsage]
        self.id = lease.instance_id
        """The id of the lease."""
        self.node = lease.node
        """The node that has the browser."""
        self._lease = lease
        self._finaliser = weakref.finalize(self, self._keeper.release_soon, lease)
        # The keeper itself releases what is left at the end of the interpreter.
        self._finaliser.atexit = False

    def _send(self, call: Call[T]) -> T:
        try:
            return self._farm.send(call, self._http)
        finally:
            self._keeper.renew(self._lease)

    @property
    def cdp_url(self) -> str | None:
        """The address for Playwright's `connect_over_cdp`; None if the farm has no CDP endpoint."""
        return self._lease.cdp_url

    @property
    def live_url(self) -> str | None:
        """The address at which a person can watch the session; None if the farm has no live view."""
        return self._lease.live_url

    @property
    def live_control_url(self) -> str | None:
        """The address at which a person can watch the session and act in it."""
        return self._lease.live_control_url

    def goto(self, url: str, *, include: Sequence[Include] = ("metadata", "ac_tree")) -> Observation:
        """Opens a page, waits until it has loaded, and observes it. A failure is raised."""
        observation = self.step(commands.visit(url), include=include)
        if observation.error is not None:
            raise observation.error
        return observation

    def back(self) -> None:
        """Goes back in the history."""
        self.execute(commands.back())

    def forward(self) -> None:
        """Goes forward in the history."""
        self.execute(commands.forward())

    def execute(self, command: CommandLike) -> dict[str, Any]:
        """Executes a command, waits until the page has settled, and returns the result. A failure is raised."""
        return self._send(_calls.execute(self._lease, command))

    def step(
        self,
        command: CommandLike,
        *,
        include: Sequence[Include] = DEFAULT_INCLUDE,
        interaction_mode: InteractionMode = "set_of_marks",
        format: ImageFormat = "png",
    ) -> Observation:
        """Executes a command and observes the page, in one round trip.

        If the command fails on the page, the observation's `error` says why. Lost infrastructure is raised.
        """
        return self._send(_calls.step(self._lease, command, include, interaction_mode, format))

    def observe(
        self,
        *,
        include: Sequence[Include] = DEFAULT_INCLUDE,
        interaction_mode: InteractionMode = "set_of_marks",
        format: ImageFormat = "png",
    ) -> Observation:
        """Observes the page."""
        return self._send(_calls.observe(self._lease, include, interaction_mode, format))

    def screenshot(
        self, *, interaction_mode: InteractionMode = "set_of_marks", format: ImageFormat = "png"
    ) -> Screenshot:
        """Takes a screenshot, with numbered marks on interactive elements or (`coordinates`) without."""
        return self._send(_calls.screenshot(self._lease, interaction_mode, format))

    def computer(
        self,
        dialect: Dialect | str,
        action: Any,
        *,
        version: str | None = None,
        display: tuple[int, int] | None = None,
        acknowledge_safety_checks: bool = False,
    ) -> ComputerResult:
        """Carries out a model's turn in its own format. docs/dialects.md lists dialects and versions."""
        call = _calls.computer(self._lease, dialect, action, version, display, acknowledge_safety_checks)
        return self._send(call)

    def page(self) -> PageMetadata:
        """Returns title and address of the page."""
        return PageMetadata.parse(self.execute(commands.command("get_page_metadata")))

    def text(self, lines: int = 100) -> str:
        """Returns the first lines of the page's text."""
        result = self.execute(commands.command("get_webpage_text", n_lines=lines))
        return result["text"]

    def viewport(self) -> tuple[int, int]:
        """Returns width and height of the page in CSS pixels."""
        return self._send(_calls.viewport(self._lease))

    def tabs(self) -> list[Tab]:
        """Lists the tabs."""
        result = self.execute(commands.command("list_tabs"))
        return [Tab.parse(tab) for tab in result["tabs"]]

    def open_tab(self, url: str | None = None) -> None:
        """Opens a tab. Only for sessions with `tabs="many"`."""
        self.execute(commands.open_tab(url))

    def switch_tab(self, id: commands.ElementId) -> None:
        """Makes a tab the current one."""
        self.execute(commands.switch_tab(id))

    def close_tab(self, id: commands.ElementId | None = None) -> None:
        """Closes a tab, by default the current one."""
        self.execute(commands.close_tab(id))

    def storage_state(self) -> dict[str, Any]:
        """Returns cookies, localStorage, IndexedDB and private files in Playwright's format."""
        return self._send(_calls.storage_state(self._lease))

    def set_storage_state(self, state: Mapping[str, Any]) -> None:
        """Replaces cookies, localStorage, IndexedDB and private files. The open page is not reloaded."""
        self._send(_calls.set_storage_state(self._lease, state))

    def files(self) -> list[File]:
        """Lists uploaded files and, with `downloads="keep"`, downloads."""
        return self._send(_calls.list_files(self._lease))

    def upload(self, name: str, content: bytes | Path) -> None:
        """Uploads a file, which `set_files` can choose in a page."""
        data = run_blocking(content.read_bytes) if isinstance(content, Path) else content
        self._send(_calls.write_file(self._lease, name, data))

    def download(self, name: str) -> bytes:
        """Returns the content of a file."""
        return self._send(_calls.read_file(self._lease, name))

    def network(self) -> dict[str, Any]:
        """Returns what was recorded, and how requests were answered, of a session with the option `network`."""
        return self._send(_calls.network(self._lease))

    def fork(
        self, steps: int | None = None, *, minutes: int = 60, wait: float = 60.0, keep_alive: bool = True
    ) -> Session:
        """Acquires a second session in the state of this one, which must replay an archive.

        The commands of this session, or its first `steps` ones, are carried out again in the new one. If it shows
        something else, `ForkDiffers` is raised and names the first difference.
        """
        call = _calls.fork(self._lease, steps, minutes, wait)
        start = self._farm._start  # pyright: ignore[reportPrivateUsage]
        return start(call, minutes, keep_alive)

    def recording(self, name: Literal["recording.json", "recording.mjpeg", "console.jsonl", "network.har"]) -> bytes:
        """Returns a part of the recording of a session with `record=True`."""
        return self._send(_calls.recording(self._lease, name))

    def delete_file(self, name: str) -> None:
        """Deletes a file."""
        self._send(_calls.delete_file(self._lease, name))

    def probe(self) -> None:
        """Checks that the browser is alive, and renews the lease."""
        self._send(_calls.probe(self._lease))

    def release(self) -> None:
        """Releases the lease. A lease that has already ended is no error."""
        if self._finaliser.detach() is None or self._keeper.is_closed:
            return
        try:
            self._farm.send(_calls.release(self._lease), self._http)
        except (InvalidInstance, NotInUse):
            pass
        except BaseException as error:
            self._keeper.release_soon(self._lease)
            if not isinstance(error, InfrastructureError):
                raise
        finally:
            self._slot = None
            self._keeper.remove(self._lease)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None and not isinstance(error, Exception):
            # Cancelled or interrupted: do not wait for the farm.
            self._finaliser()
        else:
            self.release()


def serve(instances: int, *, arguments: Sequence[str] = (), ready_seconds: float = 60.0, timeout: float = 120.0) -> Farm:
    """Starts a farm with this number of browser sessions on this machine.

    It has its own ports and key, and ends when the farm is closed or this process ends. `arguments` are further options
    of `webgym serve`, such as `--allow-private-network`. Raises `FarmStartError` if it does not start.
    """
    process = FarmProcess.serve(instances, arguments, ready_seconds)
    return started(Farm._of_process(process, timeout))  # pyright: ignore[reportPrivateUsage]
