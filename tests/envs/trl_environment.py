"""The pattern of TRL's environment_factory: a class with reset and public methods as tools, used as GRPOTrainer uses it.

The trainer itself is not needed: it creates one environment per rollout, calls reset with the columns of the row, makes the
public methods tools of the model, and gives the environments to the reward functions afterwards.
"""

import argparse
import inspect
import json
from concurrent.futures import ThreadPoolExecutor

from openenv import GenericEnvClient


class WebEnvironment:
    def __init__(self, url: str) -> None:
        self._client = GenericEnvClient(base_url=url, message_timeout_s=300).sync()
        self.reward = 0.0
        self.done = False
        self.is_masked = False

    def reset(self, task_id: str, **columns: object) -> str:
        result = self._client.reset(task_id=task_id, screenshot="none", **columns)
        self.reward, self.done, self.is_masked = 0.0, False, False
        return f"{result.observation['goal']}\n\n{result.observation['text']}"

    def act(self, action: str) -> str:
        """
        Perform one action in the browser.

        Args:
            action: A call such as click('12'), fill('3', 'text') or goto('https://example.com').
        """
        return self._step(action)

    def answer(self, text: str) -> str:
        """
        Give the final answer.

        Args:
            text: The answer to the task.
        """
        return self._step(f"send_msg_to_user({text!r})")

    def _step(self, action: str) -> str:
        if self.done:
            raise ValueError("The episode is over.")
        result = self._client.step({"action_str": action})
        self.done = result.done
        self.is_masked = result.done and result.reward is None
        self.reward += result.reward or 0.0
        return result.observation["error"] or result.observation["text"]


def rollout(environment: WebEnvironment, row: dict, answer: str) -> float:
    observation = environment.reset(**row)
    assert row["task_id"] and observation
    tools = {
        name: method
        for name, method in inspect.getmembers(environment, predicate=inspect.ismethod)
        if not name.startswith("_") and name != "reset"
    }
    assert set(tools) == {"act", "answer"} and all(inspect.getdoc(tool) for tool in tools.values())
    tools["act"]("scroll(0, 100)")
    tools["answer"](answer)
    assert environment.done and not environment.is_masked
    return environment.reward


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("tasks")
    options = parser.parse_args()
    with open(options.tasks, encoding="utf-8") as file:
        tasks = [task for task in map(json.loads, file) if task.get("definite_answer")][:4]
    environments = [WebEnvironment(options.url) for _ in range(2 * len(tasks))]
    rows = [
        ({"task_id": str(task["task_id"]), "split": "train"}, answer)
        for task in tasks
        for answer in (task["definite_answer"], "no")
    ]
    with ThreadPoolExecutor(len(environments)) as pool:
        rewards = list(pool.map(lambda pair: rollout(pair[0], *pair[1]), zip(environments, rows)))
    assert rewards == [1.0, 0.0] * len(tasks), rewards
    print(f"environment_factory: {len(rewards)} rollouts, rewards {rewards}")


main()
