"""verl's AgentLoopManager runs our agent loop on practice tasks: its tokens, masks and logprobs are those of the model.

The model is a script; everything else is real: Ray, verl's worker, tokenizer and image processor, a farm and its pages.
"""

import json
import math
import os

# Ray then uses loopback addresses only, and sends no statistics.
os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "VERL_USE_EXTERNAL_MODULES": "webgym_rs.verl", "CUDA_VISIBLE_DEVICES": ""}

import numpy
import ray
import torch
import webgym_rs.verl
import yaml
from harness import OUT, check, phase, run_checks
from hydra import compose, initialize_config_module
from practice_tasks import Practice, address_of, browsers_of, serve
from scripted_client import ScriptedClient
from text_model import tool_call
from transformers import AutoTokenizer
from verl import DataProto
from verl.experimental.agent_loop import AgentLoopManager
from verl.trainer.ppo.core_algos import get_adv_estimator_fn
from webgym_rs.errors import InfrastructureError

MODEL = OUT / "model"
RECORD = OUT / "verl-agent-calls.jsonl"
GROUP = 4


def start_ray() -> None:
    """Starts Ray on this machine. It gives up after 30 seconds, which a busy machine may need."""
    for attempt in range(5):
        try:
            ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=300_000_000)
            return
        except Exception:
            ray.shutdown()
            if attempt == 4:
                raise


def make_config(loop: dict, *overrides: str):
    path = OUT / "verl-agent.yaml"
    path.write_text(yaml.safe_dump([{"name": "webgym", "_target_": "webgym_rs.verl.WebAgentLoop", **loop}]))
    settings = {
        "algorithm.adv_estimator": "webgym_grpo",
        "actor_rollout_ref.model.path": MODEL,
        "actor_rollout_ref.rollout.name": "vllm",
        "actor_rollout_ref.rollout.mode": "async",
        "actor_rollout_ref.rollout.prompt_length": 8000,
        "actor_rollout_ref.rollout.response_length": 12000,
        "actor_rollout_ref.rollout.calculate_log_probs": "true",
        "actor_rollout_ref.rollout.agent.num_workers": 1,
        "actor_rollout_ref.rollout.agent.agent_loop_config_path": path,
    }
    with initialize_config_module("verl.trainer.config", version_base=None):
        return compose("ppo_trainer", [f"{key}={value}" for key, value in settings.items()] + list(overrides))


def make_batch(task: dict) -> DataProto:
    row = webgym_rs.verl.rows([task])[0]
    columns = {"raw_prompt": row["prompt"], "agent_name": row["agent_name"], "extra_info": row["extra_info"], "uid": "one"}
    batch = {}
    for name, value in columns.items():
        batch[name] = numpy.empty(GROUP, dtype=object)
        batch[name][:] = [value] * GROUP
    return DataProto.from_dict(tensors={"dummy": torch.zeros(GROUP, 1)}, non_tensors=batch)


def run_group(task: dict, replies: list[str], loop: dict, victims: list[int] = (), *overrides: str) -> DataProto:
    tokenizer = AutoTokenizer.from_pretrained(MODEL)
    script = [tokenizer.encode(reply, add_special_tokens=False) + [tokenizer.eos_token_id] for reply in replies]
    RECORD.unlink(missing_ok=True)
    client = ScriptedClient(script, RECORD, victims)
    manager = AgentLoopManager.create(make_config(loop, *overrides), client)
    return manager.generate_sequences(make_batch(task))


def calls_by_last_prompt() -> list[list[dict]]:
    """Returns the calls of each attempt, in order."""
    attempts: dict[str, list[dict]] = {}
    for line in RECORD.read_text().splitlines():
        call = json.loads(line)
        attempts.setdefault(call["request"], []).append(call)
    return list(attempts.values())


def check_row(output: DataProto, number: int, name: str) -> None:
    """Compares a row with what the model was asked and replied."""
    row = output.batch[number]
    attention, mask = row["attention_mask"].bool(), row["response_mask"].bool()
    ids = row["input_ids"][attention].tolist()
    found = [calls for calls in calls_by_last_prompt() if calls[-1]["prompt"] + calls[-1]["reply"] == ids]
    check(found, f"verl agent, {name}: row {number} is not the conversation of a request")
    calls = found[0]
    check(
        row["responses"][mask].tolist() == [token for call in calls for token in call["reply"]],
        f"verl agent, {name}: the mask of row {number} is not that of the replies",
    )
    logprobs = torch.tensor([value for call in calls for value in call["logprobs"]])
    check(torch.equal(row["rollout_log_probs"][mask], logprobs), f"verl agent, {name}: other logprobs in row {number}")
    check(not row["rollout_log_probs"][~mask].any(), f"verl agent, {name}: logprobs outside of the mask")
    start = row["prompts"].shape[0]
    prompt = row["prompts"][attention[:start]].tolist()
    check(prompt == calls[0]["prompt"], f"verl agent, {name}: the prompt of row {number} is another one")
    return calls


def check_masks(screenshot: str) -> None:
    name = "images" if screenshot == "lazy" else "text"
    script = [tool_call("scroll", direction="down"), "no call", tool_call("answer", text=TASK["definite_answer"])]
    loop = {"tasks": [TASK], "screenshot": screenshot, **address_of(FARM), "session": {"viewport": {"width": 640, "height": 480}}}
    output = run_group(TASK, script, loop)
    for number in range(GROUP):
        calls = check_row(output, number, name)
        check(len(calls) == len(script), f"verl agent: {len(calls)} calls instead of {len(script)}")
        if name == "images":
            images = output.non_tensor_batch["multi_modal_inputs"][number]["image_grid_thw"]
            check(len(images) == calls[-1]["images"] == 2, f"verl agent: {len(images)} images for two pages")
    scores = output.batch["rm_scores"].sum(dim=-1).tolist()
    check(scores == [1.0] * GROUP, f"verl agent: the scores are {scores}")
    turns = output.non_tensor_batch["__num_turns__"].tolist()
    check(turns == [2 * len(script)] * GROUP, f"verl agent: the numbers of turns are {turns}")
    check(output.meta_info["timing"]["agent_loop/tool_calls/min"] > 0, "verl agent: no time for tool calls")
    trained, total = int(output.batch["response_mask"].sum()), int((output.batch["attention_mask"]).sum())
    phase(f"verl agent, {name}: {GROUP} attempts, {trained} tokens of the model among {total}; masks and logprobs are equal")


def check_text() -> None:
    check_masks("none")


def check_images() -> None:
    check_masks("lazy")


LONG = [tool_call("scroll", direction="down")] * 3


def check_retry() -> None:
    with serve(GROUP) as farm:
        script = [*LONG, tool_call("answer", text=TASK["definite_answer"])]
        output = run_group(TASK, script, {"tasks": [TASK], **address_of(farm)}, browsers_of(farm))
    scores = output.batch["rm_scores"].sum(dim=-1).tolist()
    check(scores == [1.0] * GROUP, f"verl agent: browsers were killed, and the scores are {scores}")
    for number in range(GROUP):
        check_row(output, number, "after a kill")
    again = len(calls_by_last_prompt()) - GROUP
    check(again > 0, "verl agent: nothing was lost")
    phase(f"verl agent: all browsers killed; {again} attempts were made again, and the group is complete")


def check_lost() -> None:
    with serve(GROUP) as farm:
        victims = browsers_of(farm)[:1]
        script = [*LONG, tool_call("answer", text=TASK["definite_answer"])]
        output = run_group(TASK, script, {"tasks": [TASK], "attempts": 1, **address_of(farm)}, victims)
    scores, mask = output.batch["rm_scores"].sum(dim=-1), output.batch["response_mask"]
    lost = [number for number in range(GROUP) if math.isnan(scores[number])]
    check(lost and not mask[lost].any(), f"verl agent: the scores are {scores.tolist()}, tokens {mask.sum(dim=1).tolist()}")
    kept = [number for number in range(GROUP) if number not in lost]
    check((scores[kept] == 1).all(), f"verl agent: the scores are {scores.tolist()}")
    check(list(output.non_tensor_batch["infra_lost"]) == [n in lost for n in range(GROUP)], "verl agent: infra_lost is wrong")
    rewards = output.batch["rm_scores"].clone()
    rewards[kept[0]] = 0  # as if this attempt had failed
    estimate = get_adv_estimator_fn("webgym_grpo")
    advantages, _ = estimate(token_level_rewards=rewards, response_mask=mask, index=output.non_tensor_batch["uid"])
    check(torch.isfinite(advantages).all() and not advantages[lost].any(), "verl agent: a lost attempt has an advantage")
    check((advantages[kept[0]] <= 0).all() and advantages[kept[0]].any(), "verl agent: a failed attempt has no advantage")
    phase(f"verl agent: {len(lost)} of {GROUP} attempts lost; masked, and left out of the baseline of their group")


def check_refused() -> None:
    with serve(GROUP) as farm:
        loop = {"tasks": [TASK], "attempts": 1, **address_of(farm)}
        try:
            run_group(TASK, LONG, loop, browsers_of(farm), "algorithm.adv_estimator=grpo")
        except InfrastructureError as error:
            check("webgym_grpo" in str(error), f"verl agent: the message does not name the estimator: {error}")
        else:
            check(False, "verl agent: a lost attempt passed with algorithm.adv_estimator=grpo")
    phase("verl agent: with another estimator, a lost attempt stops the batch")


if __name__ == "__main__":
    practice = Practice()
    TASK = practice.easy_tasks(1)[0]
    FARM = serve(GROUP)
    start_ray()
    run_checks(check_text, check_images, check_retry, check_lost, check_refused)
