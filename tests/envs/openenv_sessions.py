"""Plays practice tasks with OpenEnv's own GenericEnvClient, many sessions at a time.

Each session answers its task with the reference answer, except every fourth, which answers wrong. Rewards must follow.
"""

import argparse
import asyncio
import base64
import json
import time

from openenv import GenericEnvClient


def read_tasks(path: str) -> list[dict]:
    with open(path, encoding="utf-8") as file:
        return [task for task in map(json.loads, file) if task.get("definite_answer")]


async def play(url: str, task: dict, answer: str) -> tuple[float, int]:
    async with GenericEnvClient(base_url=url, message_timeout_s=300) as env:
        result = await env.reset(task_id=str(task["task_id"]), split="train")
        assert not result.done and result.reward is None, result
        observation = result.observation
        assert observation["goal"] == task["task_name"], observation["goal"]
        assert base64.b64decode(observation["screenshot_base64"]).startswith(b"\x89PNG"), "no PNG"
        result = await env.step({"action_str": "scroll(0, 200)"})
        assert not result.done and result.reward == 0.0, result
        result = await env.step({"page_up": {"full_page": True}})
        assert not result.observation["last_action_error"], result.observation["error"]
        result = await env.step({"answer": answer})
        assert result.done and result.metadata["infra_lost"] is False, result
        state = await env.state()
        assert state["step_count"] == 3, state
        return result.reward, state["step_count"]


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("tasks")
    parser.add_argument("--sessions", type=int, default=8)
    options = parser.parse_args()
    tasks = read_tasks(options.tasks)
    since = time.monotonic()
    rounds = []
    for number in range(options.sessions):
        task = tasks[number % len(tasks)]
        is_wrong = number % 4 == 3
        answer = "certainly not this" if is_wrong else task["definite_answer"]
        rounds.append((play(options.url, task, answer), 0.0 if is_wrong else 1.0))
    results = await asyncio.gather(*(episode for episode, _ in rounds))
    wrong = [(got, want) for (got, _), (_, want) in zip(results, rounds) if got != want]
    assert not wrong, f"{len(wrong)} rewards differ: {wrong}"
    steps = sum(count for _, count in results)
    seconds = time.monotonic() - since
    print(f"{len(results)} sessions, {steps} steps in {seconds:.1f} s")


asyncio.run(main())
