"""Resets and steps every MiniWoB task of BrowserGym on a farm, and checks observations, validation and leases."""

import sys
import time
from statistics import median

import gymnasium
from browsergym.core.action.highlevel import HighLevelActionSet
from browsergym.miniwob import ALL_MINIWOB_TASKS
from farm_plugin import leases

import webgym_rs as wg
from webgym_rs.browsergym import serve_miniwob, use_farm

# MiniWoB's own subsets of BrowserGym's actions.
ACTION_SET = HighLevelActionSet(subsets=["miniwob_all"], multiaction=False)
ACTIONS = ("noop(0)", "mouse_click(60, 100)", "scroll(0, 50)", 'keyboard_press("Tab")')
REWARDS = (0.0, 1.0)


def check_task(env: gymnasium.Env, name: str) -> float:
    """Runs an episode and returns the seconds that its reset took."""
    started = time.monotonic()
    observation, info = env.reset(seed=1)
    took = time.monotonic() - started
    assert env.observation_space.contains(observation), f"{name}: the observation is not in the observation space"
    assert observation["goal"], f"{name} has no goal"
    assert info["task_info"]["TASK_READY"], f"{name} is not ready"
    for action in ACTIONS:
        observation, reward, terminated, truncated, info = env.step(action)
        assert not observation["last_action_error"], f"{name}: {action}: {observation['last_action_error']}"
        assert observation["screenshot"].any(), f"{name}: the screenshot is empty"
        assert reward in REWARDS, f"{name}: the reward is {reward}"
        if terminated:
            break
    return took


def main() -> None:
    failures = []
    resets = []
    with wg.serve(2, arguments=["--allow-private-network"]) as farm, serve_miniwob(), use_farm(farm):
        for task in ALL_MINIWOB_TASKS:
            name = task.get_task_id()
            env = gymnasium.make(
                f"browsergym/{name}", slow_mo=0, pre_observation_delay=0, action_mapping=ACTION_SET.to_python_code
            )
            try:
                resets.append(check_task(env, name))
            except Exception as error:
                failures.append(f"{name}: {type(error).__name__}: {error}")
            env.close()
            assert leases(farm) == [], f"{name} left a lease"
    for failure in failures:
        print(failure)
    print(f"{len(resets)} of {len(ALL_MINIWOB_TASKS)} tasks reset and step; median reset {median(resets):.2f} s")
    sys.exit(1 if failures else 0)


main()
