"""BrowserGym on a farm: solves MiniWoB tasks on leased sessions, with BrowserGym's observations and actions.

Usage: browsergym_env.py [EPISODES]. Needs: pip install 'webgym-rs[browsergym]' browsergym-miniwob miniwob
"""

import re
import sys
import time
from typing import Any

import gymnasium
from browsergym.utils.obs import flatten_axtree_to_str  # pyright: ignore[reportMissingImports]

import webgym_rs as wg
from webgym_rs.browsergym import serve_miniwob, use_farm

episodes = int(sys.argv[1]) if len(sys.argv) > 1 else 5


def choose_action(observation: dict[str, Any]) -> str:
    """Clicks the button that the goal names, as in: Click on the "Submit" button."""
    name = re.findall('"(.+)"', observation["goal"])[0]
    tree = flatten_axtree_to_str(observation["axtree_object"])
    element = re.findall(rf"\[(\w+)\] button {name!r}", tree)[0]
    return f'click("{element}")'


# Pages on this machine are private addresses, which a farm refuses by default.
with wg.serve(2, arguments=["--allow-private-network"]) as farm, serve_miniwob(), use_farm(farm):
    # The module before the colon registers the tasks.
    env = gymnasium.make("browsergym.miniwob:browsergym/miniwob.click-button")
    total, started = 0.0, time.monotonic()
    for seed in range(episodes):
        observation, info = env.reset(seed=seed)
        observation, reward, terminated, truncated, info = env.step(choose_action(observation))
        total += float(reward)
    env.close()
    print(f"{total:.0f} of {episodes} episodes solved in {time.monotonic() - started:.1f} s")
