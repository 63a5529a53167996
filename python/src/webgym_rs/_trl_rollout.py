"""The tokens of concurrent episodes, for `rollout_func` of TRL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ._episodes.conversation import Conversation, prompt_of
from ._episodes.tasks import Task
from ._episodes.tools import TOOLS

REPLY = "a reply of the model"


class RolloutTrainer(Protocol):
    """The parts of TRL's GRPOTrainer that are used."""

    processing_class: Any
    max_completion_length: int
    eos_token_ids: list[int]

    def _generate_single_turn(
        self, prompt_ids: list[list[int]], images: None, multimodal_fields: dict[str, Any], num_generations: int
    ) -> tuple[list[list[int]], list[list[float]] | None]: ...


@dataclass
class Attempt:
    """An attempt at a task: its conversation and its tokens. `mask` is 1 for tokens of the model."""

    conversation: Conversation
    task: Task
    prompt_ids: list[int] = field(default_factory=list[int])
    ids: list[int] = field(default_factory=list[int])
    mask: list[int] = field(default_factory=list[int])
    logprobs: list[float] | None = field(default_factory=list[float])
    is_over: bool = False

    @property
    def is_due(self) -> bool:
        """Whether it has not been tried, or was lost."""
        return not self.is_over or self.conversation.lost

    async def start(self, trainer: RolloutTrainer) -> None:
        """Begins on a clean session, without the tokens of an earlier attempt."""
        self.ids, self.mask, self.logprobs, self.is_over = [], [], [], False
        messages = prompt_of(self.task)
        messages[-1]["content"] += await self.conversation.start(self.task)
        rendered = trainer.processing_class.apply_chat_template(
            messages, tools=TOOLS, add_generation_prompt=True, tokenize=True, return_dict=True
        )
        self.prompt_ids = list(rendered["input_ids"])
        self._end_if_lost(trainer)

    def add(self, ids: Sequence[int], logprobs: Sequence[float] | None, mask: int) -> None:
        self.ids += ids
        self.mask += [mask] * len(ids)
        if logprobs is None:
            self.logprobs = None
        elif self.logprobs is not None:
            self.logprobs += logprobs

    async def act(self, trainer: RolloutTrainer) -> None:
        """Carries out the reply that was generated last, and appends what the model sees next."""
        reply = trainer.processing_class.decode(self.ids[self._last_reply :], skip_special_tokens=True)
        observation = await self.conversation.reply(reply)
        self._end_if_lost(trainer)
        if self.conversation.done:
            self.is_over = True
            return
        suffix = suffix_ids(trainer.processing_class, {"role": "tool", "content": observation})
        is_cut = self.ids[-1] not in trainer.eos_token_ids
        if is_cut or len(self.ids) + len(suffix) >= trainer.max_completion_length:
            # No room for another reply: the episode ends as it would at the step limit.
            self.is_over = True
            return
        self.add(suffix, None if self.logprobs is None else [0.0] * len(suffix), 0)

    @property
    def _last_reply(self) -> int:
        """Where the last reply begins."""
        number = len(self.mask)
        while number and self.mask[number - 1]:
            number -= 1
        return number

    def _end_if_lost(self, trainer: RolloutTrainer) -> None:
        if self.conversation.lost:
            self.is_over = True
            self.ids = self.ids or [trainer.eos_token_ids[0]]
            self.logprobs = self.logprobs if self.logprobs is None else self.logprobs or [0.0]
            self.mask = [0] * len(self.ids)


def generate_turn(attempts: Sequence[Attempt], trainer: RolloutTrainer) -> None:
    """Lets the model reply in all attempts, in one batch, by whatever the trainer generates with."""
    prompts = [attempt.prompt_ids + attempt.ids for attempt in attempts]
    replies, logprobs = trainer._generate_single_turn(prompts, None, {}, 1)  # pyright: ignore[reportPrivateUsage]
    for number, (attempt, reply) in enumerate(zip(attempts, replies, strict=True)):
        room = trainer.max_completion_length - len(attempt.ids)
        attempt.add(reply[:room], logprobs[number][:room] if logprobs else None, 1)


def suffix_ids(tokenizer: Any, message: dict[str, Any]) -> list[int]:
    """Returns the tokens from the end of a reply to the beginning of the next, with the message between them.

    Earlier turns are never rendered again, because a template may then change them, as Qwen3's does.
    """
    messages = [{"role": "user", "content": "?"}, {"role": "assistant", "content": REPLY}, message]
    rendered: str = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    after = rendered[rendered.index(REPLY) + len(REPLY) :]
    # The model has written the end token itself; what a template writes after it belongs to the suffix.
    suffix = after[after.find(tokenizer.eos_token) + len(tokenizer.eos_token) :] if tokenizer.eos_token in after else after
    return list(tokenizer(suffix, add_special_tokens=False)["input_ids"])
