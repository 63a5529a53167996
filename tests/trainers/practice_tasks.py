"""The practice sites and a farm of our own, for the checks of webgym_rs with trainers."""

import json
import os
import signal
from pathlib import Path

from harness import OUT, WEBGYM, Process

os.environ["WEBGYM_BINARY"] = str(WEBGYM)

import webgym_rs as wg  # noqa: E402


class Practice:
    """Serves the practice sites until this process ends."""

    def __init__(self):
        self.path = OUT / "practice-tasks.jsonl"
        self.process = Process("practice", [WEBGYM, "practice", "--port=0", "--tasks", self.path])
        self.process.wait_until(lambda: '"listening"' in self.process.log(), 60, "practice sites")

    def easy_tasks(self, count: int) -> list[dict]:
        """Returns tasks whose answer is on their start page."""
        tasks = [json.loads(line) for line in self.path.read_text().splitlines()]
        return [task for task in tasks if task["difficulty"] == 1 and "vault" not in task["website"]][:count]


def serve(instances: int, *options: str) -> wg.Farm:
    """Starts a farm with a browser process for each session."""
    return wg.serve(instances, arguments=["--allow-private-network", "--instances-per-browser=1", *options])


def address_of(farm: wg.Farm) -> dict[str, str]:
    return {"farm": farm.url, "api_key": farm._process.api_key}


def kill_browsers(farm: wg.Farm) -> list[int]:
    """Kills the browsers of this farm. Returns the ids of their processes."""
    killed = browsers_of(farm)
    for pid in killed:
        os.kill(pid, signal.SIGKILL)
    return killed


def browsers_of(farm: wg.Farm) -> list[int]:
    """Returns the main processes of the farm's browsers: they have a profile, and are neither helpers nor Debian's script."""
    found = []
    for pid in _descendants(farm._process.pid):
        try:
            arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        is_browser = any(part.startswith(b"--user-data-dir") for part in arguments) and arguments[0] != b"/bin/sh"
        if is_browser and not any(part.startswith(b"--type=") for part in arguments):
            found.append(pid)
    return found


def _descendants(ancestor: int) -> list[int]:
    parents = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    found, new = [], [ancestor]
    while new:
        new = [pid for pid, parent in parents.items() if parent in new]
        found += new
    return found
