"""A Playwright whose `chromium.launch` acquires a lease and connects to it.

BrowserGym starts its browsers through one global Playwright object. This module replaces that object; everything that
BrowserGym gets from it (browsers, contexts, pages) is Playwright's own. A lease ends when its browser is closed or
disconnected, when `FarmPlaywright` is closed, and with the program.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from types import TracebackType
from typing import TYPE_CHECKING, Any

from playwright.sync_api import Browser, BrowserContext, BrowserType, Playwright
from playwright.sync_api import Error as PlaywrightError

from .._client_sync import Farm, Session
from ..errors import FarmStartError, WebgymError
from ._chat import ChatMode, ChatPlaywright

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from ..options import SessionOptions

logger = logging.getLogger(__name__)

LEASE_MINUTES = 1
"""How long a lease outlives its connection. The open connection keeps it."""
# What BrowserGym passes to every launch.
WINDOW_SIZE = "--window-size="
EXPECTED_ARGUMENTS = (WINDOW_SIZE, "--disable-features=OverlayScrollbars,ExtendedOverlayScrollbars")
EXPECTED_OPTIONS: Mapping[str, Any] = {"headless": True, "ignore_default_args": ["--hide-scrollbars"]}

# Not typed: BrowserGym has no types.
core: Any = import_module("browsergym.core")
chat: Any = import_module("browsergym.core.chat")


class FarmChromium:
    """Playwright's `chromium`, with browsers that are leased sessions."""

    def __init__(self, farm: Farm, chromium: BrowserType, wait: float, session: Mapping[str, Any]):
        self._farm = farm
        self._chromium = chromium
        self._wait = wait
        self._session = session
        self._leases: dict[Browser, Session] = {}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("launch"):
            raise AttributeError(f"chromium.{name} would start a Chromium of its own; on a farm, use chromium.launch")
        return getattr(self._chromium, name)

    def launch(
        self,
        *,
        slow_mo: float | None = None,
        timeout: float | None = None,
        proxy: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Browser:
        """Acquires a lease and returns a browser that has only this lease. Closing the browser releases it.

        `proxy` and the window size become session options. Other options of a Chromium process (`args`,
        `executable_path`, …) have no effect.
        """
        _log_ignored(options)
        session_options: dict[str, Any] = {**self._session, **_window(options), **({"proxy": proxy} if proxy else {})}
        session = self._farm.lease(minutes=LEASE_MINUTES, wait=self._wait, keep_alive=False, **session_options)
        try:
            browser = self._connect(session, slow_mo, timeout)
        except BaseException:
            _release(session)
            raise
        self._leases[browser] = session
        browser.on("disconnected", lambda _: self._end(browser))
        if not browser.is_connected():
            self._end(browser)
        return browser

    def connect_again(self) -> Browser:
        """Returns a second connection to the newest lease, with contexts of its own and without `slow_mo`."""
        if not self._leases:
            return self.launch()
        return self._connect(list(self._leases.values())[-1], None, None)

    def session_of(self, browser: Browser) -> Session | None:
        """Returns the session of a browser, for its lease id or for HTTP commands; None after it has ended."""
        return self._leases.get(browser)

    def _connect(self, session: Session, slow_mo: float | None, timeout: float | None) -> Browser:
        if session.cdp_url is None:
            raise FarmStartError("the farm has no CDP endpoint; start it without --no-cdp, or update webgym")
        return _closable(self._chromium.connect_over_cdp(session.cdp_url, slow_mo=slow_mo, timeout=timeout))

    def _end(self, browser: Browser) -> None:
        session = self._leases.pop(browser, None)
        if session is not None:
            _release(session)

    def close_all(self, *, interrupted: bool) -> None:
        """Closes every browser and releases every lease. Does not use Playwright if it was `interrupted` in a call."""
        for browser, session in list(self._leases.items()):
            if not interrupted:
                # Fails if Playwright has been stopped.
                with suppress(PlaywrightError):
                    browser.close()
            self._leases.pop(browser, None)
            _release(session)


class FarmPlaywright:
    """Playwright's object with another `chromium`. `use_farm` makes it and gives it to BrowserGym."""

    def __init__(
        self,
        farm: Farm | str,
        *,
        api_key: str | None,
        wait: float,
        chat_mode: ChatMode,
        playwright: Playwright | None,
        session: Mapping[str, Any],
    ):
        self._own_farm = Farm(farm, api_key=api_key) if isinstance(farm, str) else None
        self._previous: Any = core._PLAYWRIGHT
        # Two Playwrights cannot run in one thread, so one that BrowserGym has started is used.
        used = playwright or core._get_global_playwright()
        self._playwright: Playwright = used._playwright if isinstance(used, FarmPlaywright) else used
        self._previous = self._previous or self._playwright
        leased_from = farm if isinstance(farm, Farm) else self._own_farm
        assert leased_from is not None
        self.chromium = FarmChromium(leased_from, self._playwright.chromium, wait, session)
        self._chat = ChatPlaywright(self.chromium.connect_again, chat_mode)
        self._previous_chat: Any = chat._get_global_playwright
        self._closed = False
        core._set_global_playwright(self)
        chat._get_global_playwright = lambda: self._chat

    def __getattr__(self, name: str) -> Any:
        return getattr(self._playwright, name)

    def close(self, *, interrupted: bool = False) -> None:
        """Releases the leases and gives BrowserGym the previous Playwright back."""
        if self._closed:
            return
        self._closed = True
        core._set_global_playwright(self._previous)
        chat._get_global_playwright = self._previous_chat
        try:
            self.chromium.close_all(interrupted=interrupted)
        finally:
            if self._own_farm is not None:
                self._own_farm.close()

    def stop(self) -> None:
        """Closes this object and stops Playwright."""
        self.close()
        self._playwright.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close(interrupted=error is not None and not isinstance(error, Exception))


def use_farm(
    farm: Farm | str,
    *,
    api_key: str | None = None,
    wait: float = 60.0,
    chat: ChatMode = "messages",
    playwright: Playwright | None = None,
    **session: Unpack[SessionOptions],
) -> FarmPlaywright:
    """Makes BrowserGym of this process lease its browsers from a farm, until the result is closed.

    `farm` is a farm or its URL. A reset waits `wait` seconds for a session and then raises `NoCapacity`. `chat` says
    whether BrowserGym's chat window is a list of messages only, or also a page. `playwright` is a Playwright that the
    program has started itself. The other arguments are session options of every lease.
    """
    return FarmPlaywright(farm, api_key=api_key, wait=wait, chat_mode=chat, playwright=playwright, session=session)


def _closable(browser: Browser) -> Browser:
    """Lets contexts of a lost browser be closed, so that an environment can be reset or closed after the loss."""
    new_context = browser.new_context

    def new_closable_context(**options: Any) -> BrowserContext:
        context = new_context(**options)
        close_context = context.close

        def close(**options: Any) -> None:
            try:
                close_context(**options)
            except PlaywrightError as error:
                # It ends with the connection, which is closed next.
                logger.warning("a browser context was not closed: %s", error)

        context.close = close
        return context

    browser.new_context = new_closable_context
    return browser


def _release(session: Session) -> None:
    try:
        session.release()
    except WebgymError as error:
        logger.warning("the lease %s was not released, and will expire: %s", session.id, error)


def _window(options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the session option for the size of windows, which contexts without a viewport have."""
    sizes = [text.removeprefix(WINDOW_SIZE) for text in options.get("args") or () if text.startswith(WINDOW_SIZE)]
    if not sizes:
        return {}
    width, height = sizes[-1].split(",")
    return {"viewport": {"width": int(width), "height": int(height)}}


def _log_ignored(options: Mapping[str, Any]) -> None:
    """Names the options that have no effect, except those that BrowserGym always passes."""
    arguments = [text for text in options.get("args") or () if not text.startswith(EXPECTED_ARGUMENTS)]
    others = {name: value for name, value in options.items() if name != "args" and value is not None}
    ignored = [*arguments, *(name for name, value in others.items() if EXPECTED_OPTIONS.get(name) != value)]
    if ignored:
        logger.warning("a leased browser ignores these options of chromium.launch: %s", ", ".join(ignored))
