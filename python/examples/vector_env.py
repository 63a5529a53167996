"""Steps 4 sessions at the same time: `vector_env.py TASKS.jsonl [STEPS]`."""

import sys
import time

import gymnasium
import numpy

import webgym_rs.gymnasium as wg

tasks, steps = sys.argv[1], int((sys.argv[2:] or ["10"])[0])
envs = gymnasium.make_vec(
    "webgym_rs/Task-v0",
    num_envs=4,
    vectorization_mode="vector_entry_point",
    tasks=tasks,
    arguments=["--allow-private-network"],
    max_steps=5,
    screenshot="lazy",
)
observations, infos = envs.reset(seed=1)
envs.action_space.seed(1)
started, episodes = time.monotonic(), 0
for _ in range(steps):
    actions = envs.action_space.sample()
    # Random clicks and scrolls; the other actions need a text.
    actions["action"] = numpy.where(actions["action"] < 5, wg.ACTIONS.index("click"), wg.ACTIONS.index("scroll_down"))
    observations, rewards, terminated, truncated, infos = envs.step(actions)
    episodes += int((terminated | truncated).sum())
print(f"{steps * 4 / (time.monotonic() - started):.1f} steps per second, {episodes} episodes ended")
print(f"last pages: {', '.join(observations['url'])}")
envs.close()
