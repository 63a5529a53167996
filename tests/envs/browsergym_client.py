"""Plays a practice task with OpenEnv's own BrowserGym client (envs/browsergym_env of its repository), unmodified."""

import argparse
import json
import re

from browsergym_env import BrowserGymAction, BrowserGymEnv


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("tasks")
    options = parser.parse_args()
    with open(options.tasks, encoding="utf-8") as file:
        task = json.loads(file.readline())
    with BrowserGymEnv(base_url=options.url).sync() as env:
        result = env.reset(task_name=task["task_id"])
        assert result.observation.goal == task["task_name"], result.observation.goal
        start = result.observation.url
        bid = re.search(r"\[(\d+)\] a '", result.observation.axtree_txt).group(1)
        result = env.step(BrowserGymAction(action_str=f"click('{bid}')"))
        assert not result.observation.last_action_error, result.observation.error
        assert result.observation.url != start, start
        result = env.step(BrowserGymAction(action_str="click('9999')"))
        assert result.observation.last_action_error and result.observation.error
        result = env.step(BrowserGymAction(action_str=f"send_msg_to_user({task['definite_answer']!r})"))
        assert result.done and result.reward == 1.0, result
        state = env.state()
        assert state.step_count == 3 and state.cum_reward == 1.0, state
    print("browsergym_env: click by bid, failed action and answer as expected")


main()
