"""Gymnasium environments. Importing this module registers `webgym_rs/Task-v0`:

import gymnasium, webgym_rs.gymnasium
env = gymnasium.make("webgym_rs/Task-v0", tasks="tasks.jsonl")
envs = gymnasium.make_vec("webgym_rs/Task-v0", 8, vectorization_mode="vector_entry_point", tasks="tasks.jsonl")
"""

try:
    import gymnasium
except ImportError as error:
    raise ImportError("Gymnasium is not installed; run: pip install 'webgym-rs[gym]'") from error

from .._episodes.actions import ACTIONS, Answer
from .._episodes.judge import Ended, ReferenceJudge
from .._episodes.tasks import Task, load_tasks
from ._env import TaskEnv
from ._vector import TaskVectorEnv

__all__ = ["ACTIONS", "Answer", "Ended", "ReferenceJudge", "Task", "TaskEnv", "TaskVectorEnv", "load_tasks"]

ENVIRONMENT = "webgym_rs/Task-v0"
if ENVIRONMENT not in gymnasium.registry:
    gymnasium.register(  # pyright: ignore[reportUnknownMemberType]
        ENVIRONMENT,
        entry_point="webgym_rs.gymnasium:TaskEnv",
        vector_entry_point="webgym_rs.gymnasium:TaskVectorEnv",
        nondeterministic=False,
    )
