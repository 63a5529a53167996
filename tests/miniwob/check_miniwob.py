"""Solves MiniWoB tasks through a farm with several leases at once, and writes target/miniwob/report.json.

Exits with 1 if an episode fails. An episode is determined by its task and its seed; a failure is repeated with
`make test-miniwob TASKS=… LEVELS=… SEEDS=…`.
"""

import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time
import traceback
from pathlib import Path

from episode import Episode, SolverError
from farm import Farm, FarmError, Session
from site_pages import EPISODE_LIMIT_MS, Site
from solvers import TASKS

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "target" / "miniwob"
FAILURES = OUT / "failures"
INSTANCES = 8
FULL_REWARD = 1  # drag-shapes-2 gives a part of it for a part of the work


def say(text: str) -> None:
    print(f"test-miniwob: {text}", flush=True)


class Level:
    """All episodes of one task with a number of leases at once."""

    def __init__(self, farm: Farm, site: Site, task: str, leases: int, seeds: list[int]):
        self.farm, self.site, self.task, self.leases = farm, site, task, leases
        self.waiting = list(reversed(seeds))
        self.lock = threading.Lock()
        self.results: list[dict] = []

    def run(self) -> dict:
        workers = [threading.Thread(target=self._work, daemon=True) for _ in range(self.leases)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        return self._summary()

    def _next_seed(self) -> int | None:
        with self.lock:
            return self.waiting.pop() if self.waiting else None

    def _work(self) -> None:
        """Runs episodes until none is left, in one lease as long as the farm reports no error."""
        while (seed := self._next_seed()) is not None:
            try:
                session = Session(self.farm)
            except FarmError as error:
                self._add({"seed": seed, "fault": "farm", "reason": str(error), "seconds": 0.0})
                continue
            self._work_in(session, seed)

    def _work_in(self, session: Session, seed: int | None) -> None:
        result = None
        while seed is not None:
            result = self._episode(session, seed)
            self._add(result)
            if result["fault"] == "farm":
                break
            seed = self._next_seed()
        try:
            session.release()
        except FarmError as error:
            result["fault"] = "farm"
            result["reason"] = "; ".join(filter(None, [result["reason"], str(error)]))

    def _add(self, result: dict) -> None:
        with self.lock:
            self.results.append(result)

    def _episode(self, session: Session, seed: int) -> dict:
        started = time.monotonic()
        result = {"seed": seed, "fault": None, "reason": None, "instruction": None}
        session.trace.clear()
        try:
            task = TASKS[self.task]
            episode = Episode(session, self.site, self.task, seed, task.selectors)
            result["instruction"] = episode.instruction
            task.solve(episode)
            end = episode.read()
            if not end.done or end.reward < FULL_REWARD:
                result["fault"] = "reward"
                result["reason"] = f"reward {end.reward}, done {end.done}, {end.reason or 'not timed out'}"
        except FarmError as error:
            result["fault"], result["reason"] = "farm", str(error)
        except SolverError as error:
            result["fault"], result["reason"] = "solver", str(error)
        except Exception:
            result["fault"], result["reason"] = "solver", traceback.format_exc()
        result["seconds"] = round(time.monotonic() - started, 3)
        if result["fault"]:
            self._keep_failure(session, result)
        return result

    def _keep_failure(self, session: Session, result: dict) -> None:
        """Adds the commands to the result, and keeps a screenshot."""
        result["commands"] = list(session.trace)
        path = FAILURES / f"{self.task}-{self.leases}-{result['seed']}.png"
        try:
            path.write_bytes(session.screenshot())
            result["screenshot"] = str(path.relative_to(ROOT))
        except FarmError as error:
            result["screenshot"] = f"none: {error}"

    def _summary(self) -> dict:
        failures = sorted((result for result in self.results if result["fault"]), key=lambda result: result["seed"])
        times = [result["seconds"] for result in self.results if not result["fault"]]
        return {
            "task": self.task,
            "leases": self.leases,
            "episodes": len(self.results),
            "successes": len(self.results) - len(failures),
            "median_seconds": round(statistics.median(times), 2) if times else None,
            "failures": failures,
        }


def versions(webgym: Path, html: Path) -> dict[str, str]:
    def output(*arguments: str) -> str:
        return subprocess.run([webgym, *arguments], check=False, capture_output=True, text=True, timeout=60).stdout

    browser = re.search(r"Chromium: (\S+/[\d.]+)", output("doctor"))
    package = next(html.parents[1].glob("miniwob-*.dist-info")).name
    return {
        "webgym": output("--version").removeprefix("webgym ").strip(),
        "browser": browser.group(1) if browser else "unknown",
        "miniwob": package.removeprefix("miniwob-").removesuffix(".dist-info"),
    }


def report_line(summary: dict) -> str:
    median = "-" if summary["median_seconds"] is None else f"{summary['median_seconds']:.2f} s"
    return (
        f"{summary['task']:<18} {summary['leases']} leases: "
        f"{summary['successes']:>3} of {summary['episodes']} solved, median {median}"
    )


def main() -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    # A shell starts background processes with SIGINT ignored.
    signal.signal(signal.SIGINT, lambda *_: sys.exit(130))
    html, webgym = Path(sys.argv[1]), Path(os.environ["WEBGYM"])
    names = os.environ.get("TASKS", "").split() or list(TASKS)
    if unknown := [name for name in names if name not in TASKS]:
        say(f"unknown tasks: {' '.join(unknown)}; known are: {' '.join(TASKS)}")
        return 2
    tries = int(os.environ.get("TRIES") or 50)
    levels = [int(level) for level in (os.environ.get("LEVELS") or "4 8").split()]
    given = [int(seed) for seed in os.environ.get("SEEDS", "").split()]

    shutil.rmtree(FAILURES, ignore_errors=True)
    FAILURES.mkdir(parents=True)
    used = versions(webgym, html)
    say(", ".join(f"{name} {version}" for name, version in used.items()))
    site = Site(html)
    farm = Farm(webgym, INSTANCES, OUT / "farm.log")
    summaries = []
    started = time.monotonic()
    for leases in levels:
        for name in names:
            seeds = given or [leases * 1000 + number for number in range(tries)]
            summary = Level(farm, site, name, leases, seeds).run()
            summaries.append(summary)
            say(report_line(summary))
            for failure in summary["failures"]:
                say(f"  seed {failure['seed']} ({failure['fault']}): {failure['reason']}; {failure.get('instruction')}")
    farm.stop()

    failed = sum(summary["episodes"] - summary["successes"] for summary in summaries)
    total = sum(summary["episodes"] for summary in summaries)
    minutes = round((time.monotonic() - started) / 60, 1)
    report = {
        "versions": used,
        "cores": os.cpu_count(),
        "episode_limit_ms": EPISODE_LIMIT_MS,
        "episodes": total,
        "failed": failed,
        "minutes": minutes,
        "levels": summaries,
    }
    (OUT / "report.json").write_text(json.dumps(report, indent=1) + "\n")
    say(f"{total - failed} of {total} episodes solved in {minutes} minutes; report: target/miniwob/report.json")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
