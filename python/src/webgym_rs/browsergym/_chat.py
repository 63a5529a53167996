"""BrowserGym's chat window without a browser of its own.

BrowserGym keeps the messages of the chat in a list, which is what observations contain, and shows them in a second
browser. Nobody sees that browser on a farm, so by default its page does nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from playwright.sync_api import Browser

ChatMode = Literal["messages", "page"]


class ChatPlaywright:
    """What the chat takes for Playwright. `connect` returns a browser for chats that need a page."""

    def __init__(self, connect: Callable[[], Browser], mode: ChatMode):
        self.chromium = self
        self._connect = connect
        self._mode: ChatMode = mode

    def launch(self, **options: Any) -> ChatBrowser:
        return ChatBrowser(self._connect, self._mode)


class ChatBrowser:
    """The browser of one chat. It connects to the lease of the environment if its page is needed."""

    def __init__(self, connect: Callable[[], Browser], mode: ChatMode):
        self._connect = connect
        self._mode: ChatMode = mode
        self._browser: Browser | None = None

    def new_context(self, *, record_video_dir: Any = None, **options: Any) -> Any:
        if self._mode == "messages" and record_video_dir is None:
            return ChatContext()
        self._browser = self._connect()
        return self._browser.new_context(record_video_dir=record_video_dir, **options)

    def close(self) -> None:
        if self._browser is not None:
            self._browser.close()


class ChatContext:
    """The context of a chat without a page."""

    def new_page(self) -> ChatPage:
        return ChatPage()

    def close(self) -> None:
        pass


class ChatPage:
    """Accepts what BrowserGym shows in a chat, and drops it."""

    def expose_function(self, name: str, callback: Callable[..., Any]) -> None:
        pass

    def set_content(self, html: str) -> None:
        pass

    def evaluate(self, expression: str) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"the chat has no page, so it has no {name!r}; pass chat='page' to use_farm")
