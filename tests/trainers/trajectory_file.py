"""Reads .pt files with real PyTorch. The classes that they name are those of the original; here they are empty."""

import sys
import types
from pathlib import Path

import torch

CLASSES = ["Task", "Observation", "Action", "Response", "Reward"]


def define_classes() -> None:
    for name in ["webgym", "webgym.data", "webgym.data.components"]:
        sys.modules.setdefault(name, types.ModuleType(name))
    module = sys.modules["webgym.data.components"]
    for name in CLASSES:
        setattr(module, name, type(name, (), {"__module__": module.__name__}))


def load(path: Path) -> dict:
    """Returns `{"trajectories": [[step, …], …], "metadata": {…}}`."""
    if "webgym.data.components" not in sys.modules:
        define_classes()
    return torch.load(path, weights_only=False)


def iteration_file(save_path: Path, iteration: int, split: str = "train") -> Path:
    return save_path / f"{split}_trajectories" / f"{split}_trajectories.pt.iteration{iteration}"


def outcome(trajectory: list) -> str:
    return trajectory[0]["trajectory_metadata"]["outcome"] if trajectory else "empty"
