"""A model client for verl's agent loops: it writes known replies with known logprobs and records every call."""

import json
import os
import signal
from pathlib import Path

from verl.workers.rollout.replica import TokenOutput


class ScriptedClient:
    """Writes the n-th reply of the script in the n-th turn. `victims` are processes that it kills in its second call."""

    def __init__(self, replies: list[list[int]], record: Path, victims: list[int] = ()):
        self.replies, self.record, self.victims = replies, record, list(victims)
        self.turns: dict[str, int] = {}

    async def generate(self, request_id, *, prompt_ids, sampling_params, image_data=None, **_) -> TokenOutput:
        turn = self.turns.get(request_id, 0)
        self.turns[request_id] = turn + 1
        ids = self.replies[turn]
        logprobs = [-0.01 * (turn + 1) - 0.001 * place for place in range(len(ids))]
        call = {"request": request_id, "prompt": list(prompt_ids), "reply": ids, "logprobs": logprobs}
        with self.record.open("a") as file:
            file.write(json.dumps(call | {"images": len(image_data or [])}) + "\n")
        if turn == 1:
            for pid in self.victims:
                os.kill(pid, signal.SIGKILL)
            self.victims = []
        return TokenOutput(token_ids=ids, log_probs=logprobs)
