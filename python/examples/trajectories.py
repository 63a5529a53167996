"""Summarises the trajectories of a save path, and writes the steps of the successful ones: `trajectories.py SAVE_PATH`."""

import sys
from collections import Counter

import webgym_rs as wg

dataset = wg.load(sys.argv[1])
for iteration in dataset:
    outcomes = Counter(trajectory.outcome for trajectory in iteration)
    print(f"{iteration.split} {iteration.number}: {len(iteration)} trajectories, {dict(outcomes)}")

longest = max(dataset.trajectories(), key=lambda trajectory: len(trajectory.steps))
print(f"the longest: {longest.task.task_name if longest.task else 'no task'}")
for number, step in enumerate(longest.steps):
    print(f"  {number}. {step.action.action_string if step.action else '-'}")

steps = dataset.to_pandas()
successful = steps.query("outcome == 'success'")
columns = ["task_name", "step", "action_key", "action_arguments", "url"]
successful.to_csv("successful.csv", columns=columns, index=False)
print(f"successful.csv has {len(successful)} of {len(steps)} steps")
