"""Measures BrowserGym with its own Chromium and on a farm: `python tools/bench_browsergym.py [TURNS]`.

The same MiniWoB episodes run in turns on both: time of a reset and of a step, with BrowserGym's default delays and without
them, and the memory of four open environments. CHROMIUM is the program that stock BrowserGym starts.
docs/benchmarks.md has results.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

import gymnasium

import webgym_rs as wg
from webgym_rs.browsergym import serve_miniwob, use_farm

TASKS = ("click-test", "click-button", "login-user", "enter-text", "choose-list", "click-checkboxes")
STEP = "mouse_click(30, 100)"
QUICK = {"slow_mo": 0, "pre_observation_delay": 0}
# BrowserGym's delays take most of the time, so fewer tasks suffice with them.
DELAYS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "default delays": ({}, TASKS[:2]),
    "without delays": (QUICK, TASKS),
}
OPEN_ENVIRONMENTS = 4
MIB = 1024


def make(task: str, settings: dict[str, Any]) -> gymnasium.Env[Any, Any]:
    actions: Any = import_module("browsergym.core.action.highlevel").HighLevelActionSet(subsets=["miniwob_all"])
    name = f"browsergym.miniwob:browsergym/miniwob.{task}"
    return gymnasium.make(name, action_mapping=actions.to_python_code, **settings)


def times(settings: dict[str, Any], tasks: tuple[str, ...], seed: int) -> dict[str, list[float]]:
    """Returns the milliseconds of each reset and step. A reset ends the session of the episode before."""
    found: dict[str, list[float]] = {"reset": [], "step": []}
    for task in tasks:
        env = make(task, settings)
        for episode in range(2):
            found["reset"].append(timed(lambda env=env, episode=episode: env.reset(seed=seed + episode)))
            found["step"] += [timed(lambda env=env: step(env)) for _ in range(2)]
        env.close()
    return found


def step(env: gymnasium.Env[Any, Any]) -> None:
    observation, *_ = env.step(STEP)
    assert not observation["last_action_error"], observation["last_action_error"]


def timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1000


def memory() -> float:
    """Returns the MiB that all descendants of this process use, shared pages counted once (PSS)."""
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
        except (OSError, IndexError):
            continue

    def descends(pid: int) -> bool:
        parent = parents.get(pid)
        return parent is not None and (parent == os.getpid() or descends(parent))

    return sum(pss(pid) for pid in parents if descends(pid))


def pss(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / MIB


def memory_of_open_environments(kind: Callable[[], Any]) -> float:
    """Returns what the environments and, if there is one, their farm use."""
    before = memory()
    with kind():
        return memory_with_environments() - before


def memory_with_environments() -> float:
    environments = [make(task, QUICK) for task in TASKS[:OPEN_ENVIRONMENTS]]
    for env in environments:
        env.reset(seed=1)
    used = memory()
    for env in environments:
        env.close()
    return used


def use_installed_chromium() -> None:
    """Makes stock BrowserGym start the Chromium of this machine, also for its chat."""
    core: Any = import_module("browsergym.core")
    playwright = core._get_global_playwright()
    chromium = playwright.chromium
    program = os.environ.get("CHROMIUM") or shutil.which("chromium-headless-shell")
    launch: Callable[..., Any] = chromium.launch

    def launch_installed(**options: Any) -> Any:
        return launch(**{**options, "executable_path": program})

    chromium.launch = launch_installed


@contextmanager
def stock() -> Generator[None, None, None]:
    yield


@contextmanager
def on_farm() -> Generator[None, None, None]:
    with wg.serve(OPEN_ENVIRONMENTS, arguments=["--allow-private-network"]) as farm, use_farm(farm):
        yield


def measure(turns: int) -> None:
    kinds: dict[str, Callable[[], Any]] = {"stock": stock, "farm": on_farm}
    found: dict[tuple[str, str, str], list[float]] = {}
    for turn in range(turns):
        for name, kind in kinds.items():
            with kind():
                for delays, (settings, tasks) in DELAYS.items():
                    for what, values in times(settings, tasks, 10 * turn).items():
                        found.setdefault((delays, what, name), []).append(median(values))
            used = memory_of_open_environments(kind)
            found.setdefault(("memory", f"{OPEN_ENVIRONMENTS} environments", name), []).append(used)
    for (part, what, name), values in sorted(found.items()):
        unit = "MiB" if part == "memory" else "ms"
        print(f"{part}, {what}, {name}: {median(values):.0f} {unit} ({min(values):.0f} to {max(values):.0f})")


def main() -> None:
    use_installed_chromium()
    with serve_miniwob():
        measure(int(sys.argv[1]) if len(sys.argv) > 1 else 7)


if __name__ == "__main__":
    main()
