"""Reads the trajectories that `webgym rollout` collects, without torch and without running code from the files."""

from ._dataset import Dataset, Iteration, load
from ._model import Step, Trajectory
from ._unpickle import TrajectoryFileError
from .components import Action, Observation, Response, Reward, Task, install_shim

__all__ = [
    "Action",
    "Dataset",
    "Iteration",
    "Observation",
    "Response",
    "Reward",
    "Step",
    "Task",
    "Trajectory",
    "TrajectoryFileError",
    "install_shim",
    "load",
]
