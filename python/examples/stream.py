"""Consumes the stream of a run as a trainer does: python stream.py SAVE_PATH POLICY_URL [SETTING …]"""

import sys

import webgym_rs as wg

BATCH = 3  # items for one weight update


def train(batch: list[wg.Item], rollout: wg.Rollout) -> None:
    """Stands for a weight update."""
    rewards = [reward for item in batch for reward in item.rewards if reward is not None]
    masked = sum(item.rewards.count(None) for item in batch)
    print(f"update with {len(rewards)} rewards, mean {sum(rewards) / max(len(rewards), 1):.2f}, {masked} masked")
    with rollout.paused(deadline=120):
        pass  # send the new weights to the policy server here
    # Items count as taken now that they were used, so that a killed trainer gets them again.
    rollout.acknowledge(batch[-1])


save_path, policy, *settings = sys.argv[1:]
overrides = [
    f"save_path={save_path}",
    f"env_config.vllm_server_url={policy}",
    f"env_config.stream_batch={BATCH}",
    "env_config.max_staleness=1",
    *settings,
]
with wg.rollout("rollout_train", overrides, manual=True, resume=True) as rollout:
    batch: list[wg.Item] = []
    for item in rollout:
        batch.append(item)
        if len(batch) == BATCH:
            train(batch, rollout)
            batch = []
    if batch:
        train(batch, rollout)
    print("the run has ended:", rollout.wait()["file"])
