"""What a session returns: observations with lazily decoded screenshots, tabs, files and results of `/computer`."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import WebgymError, error_of

if TYPE_CHECKING:
    import numpy
    from PIL.Image import Image


def _missing(package: str, extra: str) -> ImportError:
    return ImportError(f"{package} is not installed; run: pip install 'webgym-rs[{extra}]'")


@dataclass(frozen=True)
class Screenshot:
    """An encoded image. It is decoded when `image` or `array` is read for the first time."""

    format: str
    width: int
    height: int
    data: bytes = field(repr=False)

    @cached_property
    def image(self) -> Image:
        """The image, for Pillow."""
        try:
            from PIL import Image
        except ImportError as error:
            raise _missing("Pillow", "image") from error
        decoded = Image.open(io.BytesIO(self.data))
        decoded.load()
        return decoded

    @cached_property
    def array(self) -> numpy.ndarray[Any, numpy.dtype[numpy.uint8]]:
        """The pixels as an array of height × width × 3 bytes (RGB). It cannot be written to."""
        try:
            import numpy
        except ImportError as error:
            raise _missing("NumPy", "image") from error
        pixels = numpy.asarray(self.image.convert("RGB"))
        pixels.setflags(write=False)
        return pixels

    def save(self, path: str | PathLike[str]) -> None:
        """Writes the encoded image to a file."""
        Path(path).write_bytes(self.data)


@dataclass(frozen=True)
class PageMetadata:
    """Title and address of a page; `extra` has its meta tags and structured data, if there are any."""

    title: str
    url: str
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @classmethod
    def parse(cls, wire: Mapping[str, Any]) -> PageMetadata:
        extra = {key: value for key, value in wire.items() if key not in ("title", "url")}
        return cls(wire["title"], wire["url"], extra)


@dataclass(frozen=True)
class Tab:
    """A tab of a session with `tabs="many"`."""

    id: str
    title: str
    url: str
    current: bool

    @classmethod
    def parse(cls, wire: Mapping[str, Any]) -> Tab:
        return cls(str(wire["id"]), wire["title"], wire["url"], wire["current"])


@dataclass(frozen=True)
class File:
    """A file of a lease. `state` and `url` are set for downloads."""

    name: str
    size: int
    kind: str
    state: str | None = None
    url: str | None = None

    @classmethod
    def parse(cls, wire: Mapping[str, Any]) -> File:
        return cls(wire["name"], wire["size"], wire["kind"], wire.get("state"), wire.get("url"))


@dataclass(frozen=True)
class Observation:
    """The page after a step. Parts that were not included in the request are None."""

    result: Mapping[str, Any] | None
    """What the command returned; None if it failed, or without a command."""
    error: WebgymError | None
    """Why the command failed. The page was observed nevertheless."""
    settled: bool
    settle_ms: int
    unchanged: bool
    screenshot: Screenshot | None = None
    metadata: PageMetadata | None = None
    ac_tree: str | None = None
    screenshot_info: Mapping[str, Any] | None = None
    tabs: tuple[Tab, ...] | None = None

    @property
    def url(self) -> str | None:
        """The address of the page, if `metadata` was included."""
        return self.metadata.url if self.metadata else None

    @property
    def title(self) -> str | None:
        """The title of the page, if `metadata` was included."""
        return self.metadata.title if self.metadata else None

    @classmethod
    def parse(cls, wire: Mapping[str, Any]) -> Observation:
        metadata, tabs = wire["metadata"], wire.get("tabs")
        return cls(
            result=wire["result"],
            error=parse_error(wire["error"]),
            settled=wire["settled"],
            settle_ms=wire["settle_ms"],
            unchanged=wire["unchanged"],
            screenshot=parse_screenshot(wire["screenshot"]),
            metadata=PageMetadata.parse(metadata) if metadata else None,
            ac_tree=wire["ac_tree"],
            screenshot_info=wire["screenshot_info"],
            tabs=None if tabs is None else tuple(Tab.parse(tab) for tab in tabs),
        )


@dataclass(frozen=True)
class ComputerResult:
    """The result of a model's turn. `output` is what to send back to the model, in its dialect."""

    output: Any
    commands: tuple[Mapping[str, Any], ...]
    finished: Mapping[str, Any] | None
    """The answer and whether the model reports success, if its turn ends the episode."""
    error: WebgymError | None
    screenshot: Screenshot | None
    scale: tuple[float, float]
    metadata: PageMetadata

    @classmethod
    def parse(cls, wire: Mapping[str, Any]) -> ComputerResult:
        return cls(
            output=wire["output"],
            commands=tuple(wire["commands"]),
            finished=wire["finished"],
            error=parse_error(wire["error"]),
            screenshot=parse_screenshot(wire["screenshot"]),
            scale=(wire["scale"]["x"], wire["scale"]["y"]),
            metadata=PageMetadata.parse(wire["metadata"]),
        )


def parse_error(wire: Mapping[str, Any] | None) -> WebgymError | None:
    return error_of(wire["code"], wire["detail"]) if wire else None


def parse_screenshot(wire: Mapping[str, Any] | None) -> Screenshot | None:
    if not wire:
        return None
    data = wire["data"]
    content = data if isinstance(data, bytes) else base64.b64decode(data)
    return Screenshot(wire["format"], wire["width"], wire["height"], content)
