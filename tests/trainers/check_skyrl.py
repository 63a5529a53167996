"""SkyRL-Gym's loop of init, step and close with our environment, eight episodes at once as SkyRL's generator runs them."""

import math
from concurrent.futures import ThreadPoolExecutor

import skyrl_gym
from harness import check, phase, run_checks
from practice_tasks import Practice, address_of, kill_browsers, serve
from skyrl_gym.metrics import aggregate_for_environment

EPISODES = 8
SCROLL = '<tool_call>{"name": "scroll", "arguments": {"direction": "down"}}</tool_call>'


def answer(text: str) -> str:
    return f'<tool_call>{{"name": "answer", "arguments": {{"text": "{text}"}}}}</tool_call>'


def run_episode(config: dict, task: dict, replies: list[str]) -> tuple[float, dict]:
    """Returns the sum of the rewards, as SkyRL's generator builds it, and the metrics."""
    env = skyrl_gym.make("webgym", env_config=config, extras={"task_id": task["task_id"]})
    try:
        messages, _ = env.init([])
        check(task["task_name"] in messages[-1]["content"], "skyrl: the task is not in the prompt")
        total = 0.0
        for reply in replies:
            step = env.step(reply)
            total += step["reward"]
            if step["done"]:
                break
        return total, env.get_metrics()
    finally:
        env.close()


def run_batch(config: dict, replies_of) -> list[tuple[float, dict]]:
    jobs = [TASKS[number % len(TASKS)] for number in range(EPISODES)]
    with ThreadPoolExecutor(EPISODES) as pool:
        return list(pool.map(lambda job: run_episode(config, job[1], replies_of(*job)), enumerate(jobs)))


def check_rewards() -> None:
    config = {"tasks": TASKS, **address_of(FARM), "max_steps": 5}
    done = run_batch(config, lambda number, task: [SCROLL, "?", answer(task["definite_answer"] if number % 2 else "no")])
    rewards = [reward for reward, _ in done]
    check(rewards == [0.0, 1.0] * (EPISODES // 2), f"skyrl: the rewards are {rewards}")
    metrics = aggregate_for_environment("webgym", [metrics for _, metrics in done])
    check(metrics == {"turns": 3.0, "infra_lost": 0.0}, f"skyrl: the metrics are {metrics}")
    phase(f"skyrl: {EPISODES} episodes at once, rewards as expected")


def check_lost() -> None:
    with serve(EPISODES) as farm:
        config = {"tasks": TASKS, **address_of(farm), "on_lost": "nan"}
        killed = []

        def replies(number: int, task: dict):
            yield SCROLL
            if number == 0:
                killed.extend(kill_browsers(farm))
            yield SCROLL
            yield answer(task["definite_answer"])

        rewards = [reward for reward, _ in run_batch(config, replies)]
    check(killed and any(map(math.isnan, rewards)), f"skyrl: nothing was lost; the rewards are {rewards}")
    check(all(reward == 1 or math.isnan(reward) for reward in rewards), f"skyrl: the rewards are {rewards}")
    phase(f"skyrl: {len(killed)} browsers killed; {sum(map(math.isnan, rewards))} of {EPISODES} episodes without a reward")


if __name__ == "__main__":
    practice = Practice()
    TASKS = practice.easy_tasks(2)
    FARM = serve(EPISODES)
    skyrl_gym.register(id="webgym", entry_point="webgym_rs.skyrl:WebTextEnv")
    run_checks(check_rewards, check_lost)
