"""Loads the iterations of a save path with the original's classes and saves them to another one with its own function,
without what only webgym stores. Runs with the original on PYTHONPATH.

usage: save_by_original.py FROM TO
"""

import sys

from webgym.utils import load_all_trajectories
from webgym.utils.trajectory_storage import save_trajectories_incremental


def main() -> None:
    source, target = sys.argv[1:3]
    for split in ["train", "test"]:
        trajectories = [one for one in load_all_trajectories(base_dir=source, split=split) if one]
        for number, trajectory in enumerate(trajectories):
            trajectory[0].pop("trajectory_metadata", None)
            trajectory[0]["observation"].task.trajectory_index = number
        half = len(trajectories) // 2
        for part in [trajectories[:half], trajectories[half:]]:
            save_trajectories_incremental(part, target, split, metadata={"solution_model": "scripted"})


if __name__ == "__main__":
    main()
