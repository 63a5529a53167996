"""Trains the policy on an export of `webgym`, with GRPO's advantages, and writes the next checkpoint.

    webgym export SAVE_PATH --to jsonl --advantage grpo --last 1 --out data
    python train.py --data data --model checkpoints/0 --output checkpoints/1

Without `--data`, it writes a policy that has learned nothing to `--output`. Masked trajectories are left out.
"""

import argparse
import json
import math
import sys
from dataclasses import dataclass
from pathlib import Path

import torch
from policy import Batch, Page, Policy, load, parse_prompt, save

EPOCHS = 40
LEARNING_RATE = 0.1
# Words and tags are many, and a batch says little about each.
SLOWER = 0.2
CLIP = 0.5
ENTROPY = 0.003
# How much the policy keeps to itself on pages of tasks that it has mastered.
KEEP = 1.0


@dataclass(frozen=True)
class Choice:
    """A step: the page, the chosen element, its log-probability when it was chosen, and how good the attempt was."""

    page: Page
    chosen: int
    logprob: float
    advantage: float
    is_success: bool

    def is_mastered(self) -> bool:
        """Returns whether every attempt of the group succeeded."""
        return self.is_success and self.advantage == 0


def read_choices(data: Path) -> list[Choice]:
    """Returns the steps of the attempts that were not masked."""
    choices = []
    path = data / "train.jsonl" if data.is_dir() else data
    for line in path.read_text().splitlines():
        trajectory = json.loads(line)
        if trajectory["is_masked"]:
            continue
        # At the step limit, the last action is not carried out, so nothing is learned from it.
        is_success = trajectory["metadata"]["outcome"] == "success"
        is_cut = trajectory["metadata"].get("ending") == "out of steps"
        for step in trajectory["steps"][: -1 if is_cut else None]:
            page = parse_prompt(json.loads(step["response"]["raw_prompt"]))
            clicked = str(step["action"]["arguments"].get("element_id"))
            numbers = [number for number, _, _ in page.elements]
            if clicked in numbers:
                logprob = step["extras"]["logprobs"][0]
                choices.append(Choice(page, numbers.index(clicked), logprob, trajectory["advantage"], is_success))
    return choices


class Mastered:
    """Pages on which the policy does well, with its choices on them before the training."""

    def __init__(self, policy: Policy, pages: list[Page]):
        self._batch = Batch(pages) if pages else None
        if self._batch:
            with torch.no_grad():
                self._before = policy(self._batch)

    def divergence(self, policy: Policy) -> torch.Tensor:
        """Returns how far the policy has moved on these pages (Kullback-Leibler)."""
        if self._batch is None:
            return torch.zeros(())
        # Places without an element have the probability 0 in both.
        change = (self._before - policy(self._batch)).nan_to_num(0.0, 0.0, 0.0)
        return (self._before.exp() * change).sum(dim=1).mean()


def improve(policy: Policy, every: list[Choice]) -> float:
    """Takes steps on the clipped objective of PPO, for choices of this and of earlier policies. Returns the last loss.

    Late in the training few groups have both successes and failures. Adam's steps have the same size however little they say, so
    without the tasks that went well they would undo much of what was learned.
    """
    choices = [choice for choice in every if choice.advantage]
    keep = Mastered(policy, [choice.page for choice in every if choice.is_mastered()])
    batch = Batch([choice.page for choice in choices])
    chosen = torch.tensor([[choice.chosen] for choice in choices])
    advantages = torch.tensor([choice.advantage for choice in choices])
    before = torch.tensor([choice.logprob for choice in choices])
    details = {"params": [policy.word_weights, policy.tag_bias], "lr": LEARNING_RATE * SLOWER}
    optimizer = torch.optim.Adam([{"params": [policy.score]}, details], lr=LEARNING_RATE)
    loss = torch.zeros(())
    for _ in range(EPOCHS):
        logprobs = policy(batch)
        ratio = (logprobs.gather(1, chosen)[:, 0] - before).exp()
        gain = torch.minimum(ratio * advantages, ratio.clamp(1 - CLIP, 1 + CLIP) * advantages).mean()
        entropy = -(logprobs.exp() * logprobs).sum(dim=1).mean()
        loss = -gain - ENTROPY * entropy + KEEP * keep.divergence(policy)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return float(loss)


def main() -> None:
    parser = argparse.ArgumentParser(description="Trains the policy on an export of webgym.")
    parser.add_argument("--data", type=Path, help="folder of `webgym export --to jsonl --advantage grpo`, or its file")
    parser.add_argument("--model", type=Path, help="folder of the checkpoint that collected the data")
    parser.add_argument("--output", type=Path, required=True, help="folder of the new checkpoint")
    parser.add_argument("--iteration", default="0", help="becomes part of the version of the new checkpoint")
    options = parser.parse_args()
    torch.manual_seed(0)
    if options.data is None:
        save(Policy(), options.output, "initial")
        return
    policy, version = load(options.model)
    choices = read_choices(options.data)
    if not any(choice.advantage for choice in choices):
        # Every group succeeded or failed as a whole: there is nothing to learn, and the weights stay as they are.
        print(json.dumps({"event": "trained", "steps": 0, "from": version}))
    else:
        loss = improve(policy, choices)
        if math.isnan(loss):
            sys.exit(f"the loss is not a number; {options.data} has {len(choices)} steps")
        print(json.dumps({"event": "trained", "steps": len(choices), "loss": round(loss, 4), "from": version}))
    save(policy, options.output, f"iteration-{options.iteration}")


if __name__ == "__main__":
    main()
