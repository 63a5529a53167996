"""Finds the `webgym` program that the wheel contains."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from pathlib import Path

from .errors import FarmStartError

VARIABLE = "WEBGYM_BINARY"


def find_binary() -> Path:
    """Returns the path of `webgym`: from WEBGYM_BINARY, from the installed wheel, or from PATH."""
    chosen = os.environ.get(VARIABLE)
    if chosen:
        if os.access(chosen, os.X_OK):
            return Path(chosen)
        raise FarmStartError(f"{VARIABLE} is {chosen!r}, which is not a program")
    for folder in _script_folders():
        candidate = folder / "webgym"
        if os.access(candidate, os.X_OK) and candidate.is_file():
            return candidate
    found = shutil.which("webgym")
    if found:
        return Path(found)
    raise FarmStartError(
        f"the program webgym was not found; reinstall the wheel (pip install --force-reinstall webgym-rs), or set {VARIABLE}"
    )


def _script_folders() -> list[Path]:
    """Returns where pip puts programs: for this environment, for the user, and with --target."""
    folders = [sysconfig.get_path("scripts"), sysconfig.get_path("scripts", f"{os.name}_user")]
    beside_package = Path(__file__).resolve().parent.parent / "bin"
    return [*map(Path, folders), beside_package, Path(sys.executable).parent]
