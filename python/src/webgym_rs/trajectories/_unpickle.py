"""Reads the pickles of trajectory files without running code: only the five classes and plain containers are built."""

from __future__ import annotations

import collections
import io
import pickle
from typing import IO, Any, cast

from .components import CLASSES, MODULE

TORCH_MAGIC = 0x1950A86A20F9469CFC6C


class TrajectoryFileError(Exception):
    """A file is not a trajectory file, or is damaged."""


def _encode(text: str, encoding: str) -> bytes:
    """How protocol 2 spells bytes."""
    if encoding != "latin1":
        raise pickle.UnpicklingError(f"bytes in the encoding {encoding!r} are not allowed")
    return text.encode("latin-1")


def _reconstruct(kind: type, base: type, state: Any) -> Any:
    """How the protocols 0 and 1 spell an instance."""
    if kind not in CLASSES.values() or base is not object:
        raise pickle.UnpicklingError(f"an instance of {kind!r} is not allowed")
    return cast(Any, object.__new__(kind))  # pyright: ignore[reportUnknownArgumentType]


_ALLOWED: dict[tuple[str, str], Any] = {
    **{(MODULE, name): kind for name, kind in CLASSES.items()},
    ("collections", "OrderedDict"): collections.OrderedDict,
    ("builtins", "set"): set,
    ("builtins", "frozenset"): frozenset,
    ("builtins", "object"): object,
    ("__builtin__", "set"): set,
    ("__builtin__", "frozenset"): frozenset,
    ("__builtin__", "object"): object,
    ("_codecs", "encode"): _encode,
    ("copyreg", "_reconstructor"): _reconstruct,
    ("copy_reg", "_reconstructor"): _reconstruct,
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module_name: str, global_name: str, /) -> Any:
        try:
            return _ALLOWED[module_name, global_name]
        except KeyError:
            raise pickle.UnpicklingError(f"{module_name}.{global_name} is not allowed in a trajectory file") from None

    def persistent_load(self, pid: Any) -> Any:
        raise pickle.UnpicklingError("tensors are not allowed in a trajectory file")


def load_pickle(stream: IO[bytes], name: str) -> Any:
    """Reads one pickle; of PyTorch's older format, the fourth, which is the object."""
    try:
        value = _Unpickler(stream).load()
        if value == TORCH_MAGIC:
            for _ in range(3):
                value = _Unpickler(stream).load()
        return value
    except (pickle.UnpicklingError, EOFError, AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise TrajectoryFileError(f"cannot read {name}: {error}") from error


def load_bytes(data: bytes, name: str) -> Any:
    return load_pickle(io.BytesIO(data), name)
