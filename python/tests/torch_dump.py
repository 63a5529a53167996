"""Prints what `torch.load` reads, as JSON. Needs torch: `torch_dump.py FILE [COPY, COPY in the old format]`."""

import json
import sys
import types
from typing import Any

CLASSES = ("Task", "Observation", "Action", "Response", "Reward")


def plain(value: Any) -> Any:
    """Returns the value with its type, as JSON can express it."""
    if isinstance(value, dict):
        return {"dict": [[plain(key), plain(item)] for key, item in value.items()]}
    if isinstance(value, (list, tuple)):
        return {type(value).__name__: [plain(item) for item in value]}
    if type(value).__name__ in CLASSES:
        return {type(value).__name__: plain(dict(sorted(vars(value).items())))}
    if value is None or isinstance(value, (bool, int, float, str)):
        return {type(value).__name__: value}
    raise TypeError(f"unexpected {type(value)}")


def define_classes() -> None:
    for name in ("webgym", "webgym.data", "webgym.data.components"):
        sys.modules[name] = types.ModuleType(name)
    module = sys.modules["webgym.data.components"]
    for name in CLASSES:
        setattr(module, name, type(name, (), {"__module__": module.__name__}))


if __name__ == "__main__":
    import torch  # pyright: ignore[reportMissingImports]

    define_classes()
    loaded = torch.load(sys.argv[1], weights_only=False)
    if len(sys.argv) == 4:
        torch.save(loaded, sys.argv[2])
        torch.save(loaded, sys.argv[3], _use_new_zipfile_serialization=False)
    json.dump(plain(loaded), sys.stdout)
