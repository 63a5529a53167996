"""Collects a save path with every kind of trajectory, by the scripted policy and judge on a real farm:

    train 0   success, failure, blocked, unjudged, out of steps, lost policy, unreachable site, cut short
    train 1   two ranks, merged
    train 2   interrupted by a kill and by Ctrl-C, then resumed
    train 3   set-of-marks mode, judged by the reference answers
    test 0    success and failure, each task twice

Writes target/trainers/collected/run=1 (the save path) and target/trainers/collected/data (the task files). The path
target/trainers/collected/fresh=1 has a killed run that `--fresh` set aside.
"""

import json
import signal
import time
from pathlib import Path

import task_site
from harness import COLLECTED, Process, check, empty_folder, phase, rollout_command, run_checks, start_farm
from scripted_server import ScriptedServer
from trajectory_file import iteration_file, load, outcome

DIFFICULTIES = {"success": 2, "endless": 1, "failure": 5, "blocked": 8}


class Collector:
    def __init__(self, folder: Path):
        self.folder = empty_folder(folder)
        self.save_path, self.data = folder / "run=1", folder / "data"
        self.data.mkdir()
        self.site = task_site.start()
        self.server = ScriptedServer()
        self.farm, self.farm_port = start_farm(3)
        self.written: list[dict] = []

    def write_tasks(self, name: str, *kinds: str) -> Path:
        """Writes a task file with one task for each of the kinds."""
        tasks = [self.task(kind, f"{name}-{number}") for number, kind in enumerate(kinds)]
        self.written += tasks
        path = self.data / f"{name}.jsonl"
        path.write_text("".join(json.dumps(task) + "\n" for task in tasks))
        return path

    def task(self, kind: str, number: str) -> dict:
        # Blocked hosts are not sampled again, so each has its own name.
        blocked = f"{self.site}/blocked/".replace("127.0.0.1", f"blocked-{number}.localhost")
        websites = {"blocked": blocked, "invalid": "http://nothing.localhost:1/"}
        return {
            "task_name": f"{kind}: find the number of {number}",
            "website": websites.get(kind, f"{self.site}/page/1"),
            "domain": "numbers",
            "subdomain": "pages",
            "difficulty": DIFFICULTIES.get(kind, 2),
            "evaluator_reference": [{"id": 1, "description": "The number is shown.", "facts": ["It is 42."]}],
            "definite_answer": "42",
            "task_id": number,
        }

    def start(self, name: str, tasks: Path, *more: str, split: str = "train") -> Process:
        settings = [
            "judge=openai",
            "openai_config.model=scripted",
            f"openai_config.base_url={self.server.judge_url}",
            "policy_config.base_model=scripted",
            f"env_config.{split}_difficulty_max_steps.easy=8",
            f"env_config.{split}_difficulty_max_steps.medium=8",
            f"env_config.{split}_difficulty_max_steps.hard=8",
            "env_config.max_retries=1",
            "env_config.max_infra_retries=1",
            "env_config.image_transport=file",
        ]
        command = rollout_command(self.save_path, tasks, self.farm_port, self.server.url, *settings, *more, split=split)
        return Process(f"collect-{name}", command, {"OPENAI_API_KEY": "scripted"})

    def collect(self, name: str, tasks: Path, *more: str, split: str = "train", code: int = 0) -> None:
        process = self.start(name, tasks, *more, split=split)
        ended = process.wait(300)
        check(ended == code, f"collect {name}: exit code {ended} instead of {code}:\n{process.last_lines()}")

    def outcomes(self, iteration: int, split: str = "train") -> dict[str, list[str]]:
        """Returns the outcomes by the kind of task."""
        found: dict[str, list[str]] = {}
        for trajectory in load(iteration_file(self.save_path, iteration, split))["trajectories"]:
            kind = trajectory[0]["observation"].task.task_name.split(":")[0]
            found.setdefault(kind, []).append(outcome(trajectory))
        return found


def collect_all_kinds(collector: Collector) -> None:
    kinds = ["success", "success", "short", "failure", "blocked", "unjudged", "endless", "lost", "invalid", "slow"]
    tasks = collector.write_tasks("all-kinds", *kinds)
    # The slow task is still running when the others are done, so the grace period ends it.
    collector.collect("all-kinds", tasks, "env_config.completion_threshold=0.9", "env_config.completion_grace_period=2")
    wanted = {
        "success": ["success"] * 2,
        "short": ["success"],
        "failure": ["failure"],
        "blocked": ["blocked"],
        "unjudged": ["judge_error"],
        "endless": ["failure"],
        "lost": ["infra_lost"],
        "slow": ["cancelled"],
    }
    found = collector.outcomes(0)
    different = {kind: found.get(kind) for kind in wanted if found.get(kind) != wanted[kind]}
    check(not different, f"collect all-kinds: outcomes {different} are not as scripted")


def collect_with_ranks(collector: Collector) -> None:
    tasks = collector.write_tasks("ranks", "success", "failure", "success", "blocked", "unjudged", "success")
    ranks = [
        collector.start(
            f"rank-{rank}", tasks, "--rank", str(rank), "--num-ranks", "2", "env_config.merge_wait_minutes=2"
        )
        for rank in range(2)
    ]
    for process in ranks:
        code = process.wait(300)
        check(code == 0, f"collect ranks: {process.name} ended with exit code {code}:\n{process.last_lines()}")
    check(
        sum(map(len, collector.outcomes(1).values())) == 6,
        "collect ranks: the merged file does not have 6 trajectories",
    )
    rest = sorted(path.name for path in (collector.save_path / "train_trajectories").glob("*iteration1?*"))
    check(not rest, f"collect ranks: after the merge these files remain: {rest}")
    metadata = load(iteration_file(collector.save_path, 1))["metadata"]
    check(
        metadata.get("num_ranks_aggregated") == 2,
        f"collect ranks: num_ranks_aggregated is {metadata.get('num_ranks_aggregated')}",
    )


def collect_with_interruptions(collector: Collector) -> None:
    """Kills a run, stops it with Ctrl-C twice, and then lets it finish."""
    tasks = collector.write_tasks("resumed", "success", "failure", "success", "success", "endless", "blocked")
    journal = Path(f"{iteration_file(collector.save_path, 2)}.checkpoint")
    count = lambda kind: journal.read_text(errors="replace").count(f'{{"{kind}":') if journal.exists() else 0
    collector.server.pause = 0.5
    killed = collector.start("killed", tasks)
    killed.wait_until(lambda: count("finished") >= 1 and count("step") >= 6, 120, "finished episode")
    killed.signal(signal.SIGKILL)
    killed.wait(30)
    stopped = collector.start("stopped", tasks, "--resume")
    before = count("step")
    stopped.wait_until(lambda: count("step") > before + 2, 120, "step after resuming")
    for _ in range(2):
        stopped.signal(signal.SIGINT)
        time.sleep(1)
    code = stopped.wait(60)
    check(code == 3, f"collect resumed: a stopped run ends with exit code {code}, not 3:\n{stopped.last_lines()}")
    collector.server.pause = 0.0
    collector.collect("resumed", tasks, "--resume")
    found = collector.outcomes(2)
    wanted = {"success": ["success"] * 3, "failure": ["failure"], "endless": ["failure"], "blocked": ["blocked"]}
    check(found == wanted, f"collect resumed: outcomes {found}")
    check(not journal.exists(), "collect resumed: the journal of the finished run remains")


def collect_with_references(collector: Collector) -> None:
    tasks = collector.write_tasks("reference", "success", "failure", "short", "success")
    collector.collect("reference", tasks, "judge=reference", "context_config.interaction_mode=set_of_marks")
    found = collector.outcomes(3)
    check(
        found["success"] == ["success"] * 2 and found["failure"] == ["failure"], f"collect reference: outcomes {found}"
    )
    judge = load(iteration_file(collector.save_path, 3))["metadata"]["judge_model"]
    check(judge != "scripted", f"collect reference: judge_model is {judge}, although no model judged")


def collect_test_split(collector: Collector) -> None:
    tasks = collector.write_tasks("test", "success", "failure", "blocked")
    collector.collect("test", tasks, "env_config.test_tasks_repeat_times=2", split="test")
    found = collector.outcomes(0, "test")
    check(sum(map(len, found.values())) == 6, f"collect test: outcomes {found}")


def collect_fresh(collector: Collector) -> None:
    """Kills a run and starts a new one with --fresh, which keeps the journal of the first under another name."""
    tasks = collector.write_tasks("fresh", "success", "failure")
    collector.save_path = COLLECTED / "fresh=1"
    journal = Path(f"{iteration_file(collector.save_path, 0)}.checkpoint")
    collector.server.pause = 0.5
    killed = collector.start("fresh-killed", tasks)
    killed.wait_until(lambda: journal.exists() and '{"step":' in journal.read_text(errors="replace"), 120, "step")
    killed.signal(signal.SIGKILL)
    killed.wait(30)
    collector.server.pause = 0.0
    collector.collect("fresh", tasks, "--fresh")


def main() -> None:
    collector = Collector(COLLECTED)
    steps = [
        collect_all_kinds,
        collect_with_ranks,
        collect_with_interruptions,
        collect_with_references,
        collect_test_split,
        collect_fresh,
    ]
    for step in steps:
        step(collector)
    # The original's tools read all train tasks from one file.
    train = [task for task in collector.written if not task["task_id"].startswith(("test-", "fresh-"))]
    (collector.data / "train.jsonl").write_text("".join(json.dumps(task) + "\n" for task in train))
    collector.farm.stop()
    phase(f"collected {len(train)} train and 6 test trajectories, with merged, interrupted, blocked and unjudged ones")


if __name__ == "__main__":
    run_checks(main)
