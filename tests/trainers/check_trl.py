"""TRL's GRPOTrainer trains a tiny model on practice tasks, with our environment_factory and with our rollout_func.

Then browsers are killed in the middle of a batch: no attempt may get the reward 0 for it.
"""

import functools
import math
import os

os.environ["TRL_EXPERIMENTAL_SILENCE"] = "1"

import torch
import webgym_rs.trl
from datasets import Dataset
from harness import OUT, check, phase, run_checks
from practice_tasks import Practice, address_of, kill_browsers, serve
from text_model import make_text_model, tool_call
from transformers.utils import get_json_schema
from trl import GRPOConfig, GRPOTrainer
from trl.chat_template_utils import qwen3_chat_template
from webgym_rs import _trl_rollout
from webgym_rs._episodes.tools import TOOLS
from webgym_rs.trl import WebEnvironment, WebTasks

GROUP = 4
SCROLL = tool_call("scroll", direction="down")
NO_CALL = "I do not know."


class Recorder(GRPOTrainer):
    """Keeps what each batch consisted of."""

    def __init__(self, *arguments, **options):
        self.rewards_seen, self.batches = [], []
        super().__init__(*arguments, **options)

    def _calculate_rewards(self, *arguments):
        rewards = super()._calculate_rewards(*arguments)
        self.rewards_seen.append(rewards[:, 0].tolist())
        return rewards

    def _generate_and_score_completions(self, inputs):
        batch = super()._generate_and_score_completions(inputs)
        self.batches.append(batch)
        return batch


def train(web: WebTasks, replies: dict[str, float], steps: int, dataset: Dataset | None = None, **form) -> Recorder:
    model, tokenizer = make_text_model(replies, qwen3_chat_template)
    before = [weight.detach().clone() for weight in model.parameters()]
    config = GRPOConfig(
        output_dir=str(OUT / "trl-run"),
        per_device_train_batch_size=2 * GROUP,
        num_generations=GROUP,
        max_completion_length=12000,
        max_tool_calling_iterations=6,
        max_steps=steps,
        learning_rate=1e-3,
        logging_steps=1,
        save_strategy="no",
        report_to="none",
        use_cpu=True,
        disable_tqdm=True,
        log_level="error",
    )
    trainer = Recorder(
        model=model, args=config, processing_class=tokenizer, train_dataset=dataset or web.dataset(), **form
    )
    trainer.train()
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    check(len(losses) == steps and all(map(math.isfinite, losses)), f"trl: the losses of {steps} steps are {losses}")
    trainer.has_learned = any(not torch.equal(old, new) for old, new in zip(before, model.parameters()))
    return trainer


def mixed_replies(tasks: list[dict]) -> dict[str, float]:
    answers = {tool_call("answer", text=task["definite_answer"]): 0.35 for task in tasks}
    return {**answers, SCROLL: 0.2, NO_CALL: 0.1}


def check_rewards(trainer: Recorder, name: str) -> None:
    seen = [reward for batch in trainer.rewards_seen for reward in batch]
    check(set(seen) == {0.0, 1.0}, f"trl, {name}: the rewards are {seen}; both 0 and 1 were expected")
    check(trainer.has_learned, f"trl, {name}: no weight has changed")
    phase(f"trl, {name}: 2 steps; {seen.count(1.0)} of {len(seen)} attempts succeeded")


def train_with_environments() -> None:
    web = WebTasks(tasks=TASKS, **address_of(FARM), max_steps=4)
    trainer = train(web, mixed_replies(TASKS), 2, environment_factory=web.environment)
    check_rewards(trainer, "environment_factory")
    failed = trainer.state.log_history[0]["tools/failure_frequency"]
    check(failed == 0, f"trl: {failed:.0%} of the tool calls failed")
    web.close()


def check_schemas() -> None:
    methods = [getattr(WebEnvironment, tool["function"]["name"]) for tool in TOOLS]
    for method, tool in zip(methods, TOOLS):
        schema = get_json_schema(method)["function"]
        ours = tool["function"]
        same = schema["description"] == ours["description"] and schema["parameters"] == ours["parameters"]
        check(same, f"trl: the tool of the environment is {schema}, of rollout {ours}")


def train_with_rollout() -> None:
    web = WebTasks(tasks=TASKS, **address_of(FARM), max_steps=4)
    replies = mixed_replies(TASKS)
    trainer = train(web, replies, 2, rollout_func=web.rollout, reward_funcs=web.reward)
    check_rewards(trainer, "rollout_func")
    allowed = set(trainer._tokenizer.encode("".join(replies))) | {trainer._tokenizer.eos_token_id}
    for batch in trainer.batches:
        of_model = (batch["tool_mask"] * batch["completion_mask"]).bool()
        tokens = set(batch["completion_ids"][of_model].tolist())
        check(tokens <= allowed, "trl: tokens of a page are not masked")
        check(not of_model.all(), "trl: no token of a page is in a completion")
    web.close()


class KillOnce:
    """Kills browsers when the model has replied for the n-th time, so that every attempt has an open session."""

    def __init__(self, farm, turn: int):
        self.farm, self.turns_left, self.killed = farm, turn, []

    def __call__(self, *_) -> None:
        self.turns_left -= 1
        if self.turns_left == 0:
            self.killed = kill_browsers(self.farm)


def sure_replies() -> dict[str, float]:
    """An attempt of this model always succeeds, so a reward of 0 can come from a lost browser only."""
    return {tool_call("answer", text=TASKS[0]["definite_answer"]): 0.5, SCROLL: 0.5}


def kill_during_rollout(farm, name: str, **options) -> Recorder:
    web = WebTasks(tasks=TASKS[:1], **address_of(farm), max_steps=30, **options)
    kill, generate = KillOnce(farm, 2), _trl_rollout.generate_turn

    def generate_and_kill(attempts, trainer):
        generate(attempts, trainer)
        kill()

    webgym_rs.trl.generate_turn = generate_and_kill
    try:
        trainer = train(web, sure_replies(), 1, repeated(web), rollout_func=web.rollout, reward_funcs=web.reward)
    finally:
        webgym_rs.trl.generate_turn = generate
    check_no_zero(trainer, kill, name)
    masked = [math.isnan(reward) for reward in trainer.rewards_seen[0]]
    trained = (trainer.batches[0]["tool_mask"] * trainer.batches[0]["completion_mask"]).sum(dim=1)
    check(
        all((count == 0) == is_masked for count, is_masked in zip(trained.tolist(), masked)),
        f"trl, {name}: tokens to train {trained.tolist()} where the rewards are {trainer.rewards_seen[0]}",
    )
    web.close()
    return trainer


def kill_during_tools(farm, name: str) -> None:
    web = WebTasks(tasks=TASKS[:1], **address_of(farm), max_steps=30)
    kill, scroll = KillOnce(farm, 1), WebEnvironment.scroll

    @functools.wraps(scroll)
    def kill_and_scroll(self, direction: str):
        kill()
        return scroll(self, direction)

    WebEnvironment.scroll = kill_and_scroll
    try:
        trainer = train(web, sure_replies(), 1, repeated(web), environment_factory=web.environment)
    finally:
        WebEnvironment.scroll = scroll
    check_no_zero(trainer, kill, name)
    advantages = trainer.batches[0]["advantages"].tolist()
    check(not any(advantages), f"trl, {name}: the advantages are {advantages}; a masked attempt has 0")
    web.close()


def repeated(web: WebTasks) -> Dataset:
    row = web.dataset()[0]
    return Dataset.from_list([row, row])


def check_no_zero(trainer: Recorder, kill: KillOnce, name: str) -> None:
    rewards = trainer.rewards_seen[0]
    check(kill.killed, f"trl, {name}: no browser was killed")
    check(all(reward == 1 or math.isnan(reward) for reward in rewards), f"trl, {name}: the rewards are {rewards}")
    masked = sum(map(math.isnan, rewards))
    phase(f"trl, {name}: {len(kill.killed)} browsers killed; {len(rewards) - masked} attempts complete, {masked} masked")


def kill_and_try_again() -> None:
    with serve(2 * GROUP) as farm:
        trainer = kill_during_rollout(farm, "rollout_func")
    check(not any(map(math.isnan, trainer.rewards_seen[0])), "trl: a lost attempt was not tried again")


def kill_and_mask() -> None:
    with serve(2 * GROUP) as farm:
        trainer = kill_during_rollout(farm, "rollout_func without further attempts", attempts=1)
    check(any(map(math.isnan, trainer.rewards_seen[0])), "trl: no attempt was lost")


def kill_tools() -> None:
    with serve(2 * GROUP) as farm:
        kill_during_tools(farm, "environment_factory")


if __name__ == "__main__":
    practice = Practice()
    TASKS = practice.easy_tasks(2)
    FARM = serve(2 * GROUP)
    run_checks(
        check_schemas, train_with_environments, train_with_rollout, kill_and_try_again, kill_and_mask, kill_tools
    )
