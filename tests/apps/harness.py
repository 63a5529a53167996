"""Where the measurement keeps its files, and the applications that it starts."""

import os
import urllib.request
from pathlib import Path

import process

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "target" / "apps"
RUN = Path(os.environ.get("RUN", OUT / "run"))  # the logs, data and results of this run
WEBGYM = Path(os.environ.get("WEBGYM", ROOT / "target" / "release" / "webgym"))


def phase(text: str) -> None:
    print(f"test-apps: {text}", flush=True)


class Process(process.Process):
    """A child with its output in a file named after it."""

    def __init__(self, name: str, command: list, env: dict | None = None, cwd: Path | None = None):
        super().__init__(RUN / "logs" / f"{name}.log", command, env, cwd)


def is_answering(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=10) as response:
            return response.status == 200
    except OSError:
        return False
