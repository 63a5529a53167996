"""Plays MiniWoB with OpenEnv's own BrowserGym client (envs/browsergym_env of its repository), unmodified.

The tasks come from `webgym tasks import miniwob`, the reward from the pages themselves (`--judge program`). In click-test the
only button is the right one; click-test-2 has a wrong one, too.
"""

import argparse
import json
import re
import subprocess
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from browsergym_env import BrowserGymAction, BrowserGymEnv
from process import Process, check
from site_pages import Site

SEEDS = 8
# With seed 6, button ONE of click-test-2 is below button TWO.
COVERED = {6}
SESSIONS = 4


def bid_of(observation, label: str) -> str:
    found = re.search(rf"\[(\d+)\] button '{re.escape(label)}'", observation.axtree_txt)
    check(found is not None, f"there is no button {label} in {observation.axtree_txt!r}")
    return found[1]


def click(env, observation, label: str):
    return env.step(BrowserGymAction(action_str=f"click('{bid_of(observation, label)}')"))


def play_right(url: str, reset: dict, label: str) -> str:
    """The right click ends the episode with reward 1."""
    with BrowserGymEnv(base_url=url, message_timeout_s=300).sync() as env:
        result = env.reset(**reset)
        check(not result.done and result.reward is None, f"{reset}: the episode starts with {result}")
        result = click(env, result.observation, label)
        state = env.state()
        check(result.done and result.reward == 1.0, f"{reset}: {label} gives {result.reward}, done {result.done}")
        check((state.step_count, state.cum_reward) == (1, 1.0), f"{reset}: {state}")
        return state.task_name


def play_wrong(url: str, task: str) -> None:
    """The wrong click leaves the episode open without a reward, and the answer ends it with 0."""
    with BrowserGymEnv(base_url=url, message_timeout_s=300).sync() as env:
        result = click(env, env.reset(task_name=task).observation, "TWO")
        check((result.done, result.reward) == (False, 0.0), f"{task}: the wrong click gives {result.reward}")
        result = env.step(BrowserGymAction(action_str="send_msg_to_user('done')"))
        check((result.done, result.reward) == (True, 0.0), f"{task}: the answer gives {result.reward}")


def play_unfinished(url: str, task: str) -> None:
    """Doing nothing leaves the episode open, and the answer ends it with 0."""
    with BrowserGymEnv(base_url=url, message_timeout_s=300).sync() as env:
        env.reset(task_name=task)
        result = env.step(BrowserGymAction(action_str="noop(10)"))
        check((result.done, result.reward) == (False, 0.0), f"{task}: doing nothing gives {result.reward}")
        result = env.step(BrowserGymAction(action_str="send_msg_to_user('done')"))
        check((result.done, result.reward) == (True, 0.0), f"{task}: the answer gives {result.reward}")


def play_all(url: str) -> Counter:
    seeds = range(SEEDS)
    uncovered = [seed for seed in seeds if seed not in COVERED]
    with ThreadPoolExecutor(SESSIONS) as pool:
        right = [pool.submit(play_right, url, {"task_name": f"click-test-{seed}"}, "Click Me!") for seed in seeds]
        right += [pool.submit(play_right, url, {"task_name": f"click-test-2-{seed}"}, "ONE") for seed in uncovered]
        wrong = [pool.submit(play_wrong, url, f"click-test-2-{seed}") for seed in seeds]
        unfinished = [pool.submit(play_unfinished, url, f"click-test-{seed}") for seed in seeds]
        # As with OpenEnv's own server, which has one task, a reset may name the seed only.
        by_seed = [pool.submit(play_right, url, {"split": "click-test", "seed": seed}, "Click Me!") for seed in seeds]
        again = [pool.submit(play_right, url, {"split": "click-test", "seed": seed}, "Click Me!") for seed in seeds]
        for future in [*right, *wrong, *unfinished]:
            future.result()
        names = [future.result() for future in by_seed]
        check(names == [future.result() for future in again], "a seed chooses another task the second time")
        check(len(set(names)) > 1, f"every seed chooses {names[0]}")
    return Counter(right=len(right) + len(by_seed) + len(again), wrong=len(wrong), unfinished=len(unfinished))


def import_tasks(webgym: str, html: Path, base_url: str, page: str, file: Path) -> None:
    command = [webgym, "tasks", "import", "miniwob", str(html), "--base-url", base_url, "--seeds", str(SEEDS)]
    done = subprocess.run([*command, "--page", page, "-o", str(file)], capture_output=True, text=True, check=False)
    check(done.returncode == 0, f"the import of {page} failed: {done.stdout}{done.stderr}")
    check(len(file.read_text().splitlines()) == SEEDS, f"{file} has another number of tasks")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("webgym")
    parser.add_argument("html", type=Path, help="the folder html of the package miniwob")
    parser.add_argument("output", type=Path)
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    site = Site(options.html)
    files = []
    for page in ("click-test", "click-test-2"):
        file = options.output / f"{page}.jsonl"
        import_tasks(options.webgym, options.html, site.url, page, file)
        files += ["--tasks", f"{page}={file}"]
    fixed = ["--judge", "program", "--port", "0", "--instances", SESSIONS, "--queue-secs", "300"]
    command = [options.webgym, "env", *fixed, "--allow-private-network", *files]
    with Process(options.output / "env.log", command) as server:
        url = server.wait_until(lambda: url_of(server.log()), 120, "address")
        counts = play_all(url)
    print(
        f"browsergym_env on MiniWoB: {counts['right']} right clicks with reward 1, {counts['wrong']} wrong ones and "
        f"{counts['unfinished']} unfinished episodes with 0; {SEEDS} seeds"
    )


def url_of(log: str) -> str:
    events = [json.loads(line) for line in log.splitlines() if line.startswith("{") and line.endswith("}")]
    return next((event["url"] for event in events if event.get("tier") == "env"), "")


main()
