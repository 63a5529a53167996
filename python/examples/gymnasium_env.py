"""Runs an agent that answers with the first price on the page: `gymnasium_env.py TASKS.jsonl [EPISODES]`."""

import re
import sys

import gymnasium

import webgym_rs as wg
from webgym_rs.gymnasium import Answer

tasks, episodes = sys.argv[1], int((sys.argv[2:] or ["3"])[0])
env = gymnasium.make("webgym_rs/Task-v0", tasks=tasks, arguments=["--allow-private-network"], max_steps=3)
total = 0.0
for episode in range(episodes):
    observation, info = env.reset(seed=episode)
    done = False
    while not done:
        price = re.search(r"\$\d+\.\d\d", observation["ac_tree"])
        action = Answer(price[0]) if price else wg.page_down(full_page=True)
        observation, reward, terminated, truncated, info = env.step(action)
        done = terminated or truncated
        if done and info["mask"]:  # not lost to the infrastructure
            total += float(reward)
            print(f"{info['task_id']}: reward {reward}, answer {info.get('answer')}")
print(f"total reward {total}")
env.close()
