"""Browser tasks for verl: an agent loop with the exact tokens of the model server, and a masked GRPO advantage.

    VERL_USE_EXTERNAL_MODULES=webgym_rs.verl python -m verl.trainer.main_ppo algorithm.adv_estimator=webgym_grpo \\
        actor_rollout_ref.rollout.agent.agent_loop_config_path=webgym.yaml …

with `webgym.yaml`: `[{name: webgym, _target_: webgym_rs.verl.WebAgentLoop, tasks: tasks.jsonl, farm: "http://host:7000"}]`.

An attempt that is lost to the infrastructure is tried again. If that fails, too, all its tokens are masked, its score is NaN
and its extra field `infra_lost` is true. verl's own estimators would take such a score for one of the group; `webgym_grpo`
leaves it out.
"""

# verl is too large to be installed for the type checker.
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from omegaconf import OmegaConf
from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopMetrics, AgentLoopOutput, register

from ._episodes.conversation import Conversation, prompt_of
from ._episodes.engine import shared_engine
from ._episodes.tasks import Task, Tasks, load_tasks
from ._episodes.tools import TOOLS
from ._verl_advantage import ESTIMATOR
from .errors import InfrastructureError

OF_VERL = ("trainer_config", "server_manager", "tokenizer", "processor", "dataset_cls", "data_config", "hf_model_type")


def rows(tasks: Tasks, agent_name: str = "webgym") -> list[dict[str, Any]]:
    """Returns the rows of a dataset for verl, one for each task; write them to a Parquet file."""
    return [
        {
            "data_source": "webgym",
            "agent_name": agent_name,
            "prompt": prompt_of(task),
            "reward_model": {"style": "rule", "ground_truth": task.reference or ""},
            "extra_info": {"index": number, "task_id": task.id},
        }
        for number, task in enumerate(load_tasks(tasks))
    ]


@dataclass
class _Tokens:
    """An attempt as tokens: all of them, and mask and logprobs of those after the prompt."""

    ids: list[int]
    messages: list[dict[str, Any]]
    images: list[Any]
    mask: list[int] = field(default_factory=list[int])
    logprobs: list[float] = field(default_factory=list[float])
    metrics: AgentLoopMetrics = field(default_factory=AgentLoopMetrics)
    extra: dict[str, Any] = field(default_factory=dict[str, Any])
    turns: int = 1


@register("webgym")
class WebAgentLoop(AgentLoopBase):
    """Runs the task that `extra_info["task_id"]` of a row names.

    `tasks` and the other `settings` are those of the Gymnasium environment (docs/python.md), with `screenshot="lazy"` for
    models that see images. `attempts` is how often an attempt that was lost is tried.
    """

    def __init__(self, *, page_text_lines: int = 40, attempts: int = 3, tools: Any = None, **settings: Any):
        super().__init__(**{name: settings.pop(name) for name in OF_VERL if name in settings})
        settings.pop("name", None)
        if "tasks" not in settings:
            raise ValueError("the agent loop has no tasks; name them in agent.agent_loop_config_path (see webgym_rs.verl)")
        self._engine = shared_engine({name: _plain(value) for name, value in settings.items()})
        self._lines, self._attempts = page_text_lines, attempts
        self._limit: int = self.rollout_config.response_length

    async def run(self, sampling_params: dict[str, Any], **row: Any) -> AgentLoopOutput:
        task = self._engine.task(str(row["extra_info"]["task_id"]))
        conversation = Conversation(self._engine, self._lines)
        for _ in range(self._attempts):
            try:
                tokens = await self._attempt(conversation, task, sampling_params, row)
                await self._engine.call(conversation.finish())
            finally:
                await self._engine.call(conversation.close())
            if conversation.reward is not None:
                return self._output(tokens, conversation.reward)
        if self.config.algorithm.adv_estimator != ESTIMATOR:
            raise InfrastructureError(
                f"an attempt at the task {task.id} was lost {self._attempts} times, and algorithm.adv_estimator="
                f"{self.config.algorithm.adv_estimator} would count it as a failure; use {ESTIMATOR} to mask such attempts"
            )
        return self._output(tokens, None)

    async def _attempt(self, conversation: Conversation, task: Task, sampling: dict[str, Any], row: Any) -> _Tokens:
        observation = await self._engine.call(conversation.start(task))
        messages = [dict(message) for message in row.get("raw_prompt", prompt_of(task))]
        messages[-1]["content"] = _content(conversation, messages[-1]["content"] + observation)
        images = [conversation.image] if conversation.image else []
        self._assert_mm_supported(bool(images))
        ids = await self.ct_build_initial_tokens(messages, tools=TOOLS, images=images or None)
        tokens, request = _Tokens(ids, messages, images), uuid4().hex
        while not conversation.done and len(tokens.mask) < self._limit:
            reply = await self._generate(tokens, request, sampling)
            observation = await self._act(conversation, tokens, reply)
            if conversation.done or not await self._show(conversation, tokens, reply, observation):
                break
        return tokens

    async def _generate(self, tokens: _Tokens, request: str, sampling: dict[str, Any]) -> str:
        begun = time.monotonic()
        output = await self.server_manager.generate(
            request, prompt_ids=tokens.ids, sampling_params=sampling, image_data=tokens.images or None
        )
        merged, tokens.mask, logprobs = await self.ct_merge_assistant_token(
            tokens.ids,
            output.token_ids,
            tokens.mask,
            tokens.logprobs if tokens.logprobs or output.log_probs else None,
            assistant_logprobs=output.log_probs or None,
        )
        tokens.ids, tokens.logprobs = merged.token_ids, logprobs or []
        tokens.extra = {**output.extra_fields, **tokens.extra}
        if output.extra_fields.get("max_global_steps"):
            tokens.extra["max_global_steps"] = output.extra_fields["max_global_steps"]
        tokens.turns += 1
        if output.num_preempted is not None:  # -1 stands for unknown
            tokens.metrics.num_preempted = max(tokens.metrics.num_preempted, 0) + output.num_preempted
        tokens.metrics.generate_sequences += time.monotonic() - begun
        return self.tokenizer.decode(output.token_ids, skip_special_tokens=True)

    async def _act(self, conversation: Conversation, tokens: _Tokens, reply: str) -> str:
        begun = time.monotonic()
        observation = await self._engine.call(conversation.reply(reply))
        tokens.metrics.tool_calls += time.monotonic() - begun
        return observation

    async def _show(self, conversation: Conversation, tokens: _Tokens, reply: str, observation: str) -> bool:
        """Appends an observation. Returns false if there is no room for it."""
        before = [*tokens.messages, {"role": "assistant", "content": reply}]
        after = [*before, {"role": "tool", "content": _content(conversation, observation)}]
        merged, mask, logprobs = await self.ct_merge_context_msg(
            before, after, tokens.ids, tokens.mask, tokens.logprobs or None, tools=TOOLS
        )
        if len(mask) >= self._limit:
            return False
        tokens.ids, tokens.mask, tokens.logprobs, tokens.messages = merged.token_ids, mask, logprobs or [], after
        tokens.images += [conversation.image] if conversation.image else []
        tokens.turns += 1
        return True

    def _output(self, tokens: _Tokens, reward: float | None) -> AgentLoopOutput:
        """Returns the tokens; without a reward, all of them are masked."""
        length = len(tokens.ids) - len(tokens.mask)
        ids, mask, logprobs = tokens.ids[length:], tokens.mask, tokens.logprobs
        if not ids:  # lost before the first reply; verl needs a token
            ids, mask, logprobs = [self.tokenizer.eos_token_id], [0], []
        if reward is None:
            mask = [0] * len(ids)
        return AgentLoopOutput(
            prompt_ids=tokens.ids[:length],
            response_ids=ids[: self._limit],
            response_mask=mask[: self._limit],
            response_logprobs=(logprobs or [0.0] * len(ids))[: self._limit] if self._wants_logprobs else None,
            multi_modal_data={"images": tokens.images} if tokens.images else {},
            mm_processor_kwargs=self._get_mm_processor_kwargs(),
            reward_score=math.nan if reward is None else reward,
            num_turns=tokens.turns,
            metrics=tokens.metrics,
            extra_fields={**tokens.extra, "infra_lost": reward is None, "turn_scores": [], "tool_rewards": []},
        )

    @property
    def _wants_logprobs(self) -> bool:
        return bool(self.rollout_config.calculate_log_probs)


def _plain(value: Any) -> Any:
    return OmegaConf.to_container(value, resolve=True) if OmegaConf.is_config(value) else value


def _content(conversation: Conversation, text: str) -> str | list[dict[str, Any]]:
    if conversation.image is None:
        return text
    return [{"type": "image", "image": conversation.image}, {"type": "text", "text": text}]
