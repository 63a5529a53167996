"""`webgym rollout` against real vLLM in the configurations that people start it with.

The environment variable CONFIGURATIONS (plain, no-media, api-key, small-context) selects some of them.
"""

import collections
import functools
import json
import math
import os
from pathlib import Path

from PIL import Image
from tokenizers import Tokenizer

import make_model
import task_site
from harness import OUT, check, empty_folder, phase, rollout_command, run, run_checks, start_farm
from recording_proxy import RecordingProxy, image_urls
from trajectory_file import iteration_file, load, outcome
from vllm_server import VllmServer

KEY = "sesame-4711"
WORK = OUT / "vllm-run"
# Characters that a URL would encode, which the original's readers would not decode.
SAVE_PATH = WORK / "lr=1e-6 ü"


class Collection:
    """The farm, the tasks and the folder that all configurations share."""

    def __init__(self):
        empty_folder(WORK)
        (WORK / "outside").mkdir()
        SAVE_PATH.mkdir()
        self.image_inside, self.image_outside = SAVE_PATH / "inside.png", WORK / "outside" / "outside.png"
        for path in [self.image_inside, self.image_outside]:
            Image.new("RGB", (1280, 768), (90, 120, 200)).save(path)
        site = task_site.start()
        self.tasks = WORK / "tasks.jsonl"
        task = lambda number: {
            "task_name": f"Find number {number}",
            "website": f"{site}/page/{number}",
            "domain": "d",
            "subdomain": "s",
            "difficulty": 1,
            "evaluator_reference": ["seen"],
            "definite_answer": "42",
            "task_id": number,
        }
        self.tasks.write_text("".join(json.dumps(task(number)) + "\n" for number in range(3)))
        self.farm, self.farm_port = start_farm(2)
        self.iteration = 0

    def rollout(self, name: str, url: str, *more: str, env: dict | None = None) -> tuple[int, str]:
        settings = ["judge=reference", "policy_config.base_model=tiny", "policy_config.top_k=-1"]
        settings += ["env_config.train_difficulty_max_steps.easy=6", "env_config.task_timeout_minutes=5"]
        command = rollout_command(SAVE_PATH, self.tasks, self.farm_port, url, *settings, *more)
        return run(f"rollout-{name}", command, env, seconds=400)

    def collect(self, name: str, url: str, *more: str, env: dict | None = None) -> tuple[list, str]:
        """Runs a rollout that must succeed. Returns its trajectories and its output."""
        code, output = self.rollout(name, url, *more, env=env)
        last = "\n".join(output.splitlines()[-12:])
        check(code == 0, f"{name}: rollout ended with exit code {code}:\n{last}")
        trajectories = load(iteration_file(SAVE_PATH, self.iteration))["trajectories"]
        self.iteration += 1
        check(len(trajectories) == 3, f"{name}: {len(trajectories)} trajectories instead of 3")
        lost = [outcome(trajectory) for trajectory in trajectories if outcome(trajectory) not in ("success", "failure")]
        check(not lost, f"{name}: outcomes {lost}, but only success and failure are expected")
        return trajectories, output


def decided_steps(trajectory: list) -> list[tuple[dict, dict]]:
    """Returns the steps that have a reply, with their extras."""
    extras = trajectory[0]["trajectory_metadata"]["step_extras"]
    return [(step, extra) for step, extra in zip(trajectory, extras) if step["response"] is not None]


def check_tokens(name: str, trajectories: list, proxy: RecordingProxy) -> int:
    """Checks token ids, logprobs, texts and prompts of every step with what vLLM sent. Returns the number of steps."""
    tokenizer = Tokenizer.from_file(str(OUT / "model" / "tokenizer.json"))
    vision_start = tokenizer.token_to_id("<|vision_start|>")
    end = tokenizer.token_to_id("<|im_end|>")
    # A step's own prompt names its task and step, so the ids of its tokens identify the exchange.
    sent = collections.defaultdict(list)
    for choice in proxy.completed():
        sent[tuple(choice["prompt_token_ids"])].append(choice)
    shares = list(make_model.REPLIES.values())
    count = 0
    for trajectory in trajectories:
        for step, extra in decided_steps(trajectory):
            where, response = f"{name}: step {count}", step["response"]
            ids, logprobs = extra["token_ids"], extra["logprobs"]
            check(
                ids and len(ids) == len(logprobs),
                f"{where}: {len(ids or [])} token ids, {len(logprobs or [])} logprobs",
            )
            choices = sent[tuple(extra["prompt_token_ids"])]
            check(choices, f"{where}: vLLM never had a prompt with these token ids")
            wanted = [
                (
                    choice["token_ids"],
                    [entry["logprob"] for entry in choice["logprobs"]["content"]],
                    choice["finish_reason"],
                )
                for choice in choices
            ]
            check(
                (ids, logprobs, extra["finish_reason"]) in wanted,
                f"{where}: vLLM sent {wanted}, saved are {ids} {logprobs}",
            )
            text = tokenizer.decode([number for number in ids if number != end], skip_special_tokens=False)
            check(
                text == response.raw_response, f"{where}: the tokens are {text!r}, the reply {response.raw_response!r}"
            )
            nearest = min(abs(logprobs[1] - math.log(share)) for share in shares)
            check(nearest < 0.05, f"{where}: logprob {logprobs[1]} is none of the model's {shares}")
            urls = image_urls(json.loads(response.raw_prompt))
            shown = extra["prompt_token_ids"].count(vision_start)
            check(len(urls) == shown, f"{where}: {len(urls)} images in raw_prompt, {shown} in the tokens of the prompt")
            missing = [url for url in urls if not Path(url.removeprefix("file://")).is_file()]
            check(not missing, f"{where}: raw_prompt names files that do not exist as written: {missing}")
            count += 1
    check(count > 0, f"{name}: no step has a reply")
    return count


def transports(proxy: RecordingProxy, status: int) -> set[str]:
    urls = [url for exchange in proxy.exchanges if exchange.status == status for url in exchange.image_urls()]
    return {url.split(":", 1)[0] for url in urls}


def check_plain(shared: Collection) -> None:
    with VllmServer("plain", "--allowed-local-media-path", str(SAVE_PATH)) as server:
        status, _ = server.ask("file inside the allowed folder", shared.image_inside)
        check(status == 200, f"plain: an image in the allowed folder gives {status}")
        server.ask("missing file", SAVE_PATH / "missing.png")
        server.ask("file outside the allowed folder", shared.image_outside)
        server.ask("max_tokens above the context", max_tokens=100_000)
        server.ask("max_tokens that is clipped", text="hello " * 100, max_tokens=32_760)
        server.ask("too long", text="hello " * 40_000)
        proxy = RecordingProxy(server.url)
        trajectories, _ = shared.collect("plain", proxy.url)
        check(transports(proxy, 200) == {"file"}, f"plain: images were sent as {transports(proxy, 200)}, not as files")
        steps = check_tokens("plain", trajectories, proxy)
        phase(f"vllm: plain: {steps} steps have vLLM's token ids, logprobs and prompts; images went as files")


def check_without_media_path(shared: Collection) -> None:
    with VllmServer("no-media") as server:
        status, body = server.ask("local files are not allowed", shared.image_inside)
        check(status == 500, f"no-media: vLLM answers {status} {body} to a local file, 500 was expected")
        proxy = RecordingProxy(server.url)
        trajectories, _ = shared.collect("no-media", proxy.url)
        check(
            transports(proxy, 200) == {"data"}, f"no-media: images were sent as {transports(proxy, 200)}, not as data"
        )
        refused = sum(exchange.status != 200 for exchange in proxy.exchanges)
        check(
            refused <= 3, f"no-media: {refused} requests were refused; one per concurrent episode is enough to find out"
        )
        steps = check_tokens("no-media", trajectories, proxy)
        phase(f"vllm: no-media: {steps} steps; {refused} request(s) with files were refused, then images went as data")


def check_api_key(shared: Collection) -> None:
    options = ["--api-key", KEY, "--limit-mm-per-prompt", '{"image": 1}', "--allowed-local-media-path", str(SAVE_PATH)]
    with VllmServer("api-key", *options, key=KEY) as server:
        for name, key in [("wrong key", "wrong"), ("missing key", None)]:
            server.key = key
            server.ask(name, shared.image_inside)
        server.key = KEY
        server.ask("too many images", shared.image_inside, shared.image_inside)
        proxy = RecordingProxy(server.url)
        for name, env in [("without a key", {"VLLM_API_KEY": ""}), ("with a wrong key", {"VLLM_API_KEY": "wrong"})]:
            code, output = shared.rollout("api-key-refused", proxy.url, env=env)
            check(code == 1, f"api-key: {name} the run ended with exit code {code}, not 1")
            for word in ["401", "VLLM_API_KEY"]:
                check(word in output, f"api-key: {name} the message does not name {word}: {output[-600:]}")
            check(not proxy.exchanges, f"api-key: {name} the run sent {len(proxy.exchanges)} chat requests")
        trajectories, _ = shared.collect("api-key", proxy.url, env={"VLLM_API_KEY": KEY})
        steps = check_tokens("api-key", trajectories, proxy)
        most = max(
            len(image_urls(json.loads(step["response"].raw_prompt)))
            for one in trajectories
            for step, _ in decided_steps(one)
        )
        check(most == 1, f"api-key: a prompt has {most} images, although the server accepts one")
        phase(f"vllm: api-key: refused without the key; {steps} steps with it, each with the one image that is allowed")


def first_prompt_tokens(shared: Collection) -> int:
    """Returns the length of the longest first prompt, from the first collected iteration."""
    trajectories = load(iteration_file(SAVE_PATH, 0))["trajectories"]
    return max(len(one[0]["trajectory_metadata"]["step_extras"][0]["prompt_token_ids"]) for one in trajectories)


def check_small_context(shared: Collection) -> None:
    # The first prompt and a reply fit, then prompts with one image for a few steps; a second image never does.
    limit = first_prompt_tokens(shared) + 120
    options = ["--max-model-len", str(limit), "--allowed-local-media-path", str(SAVE_PATH)]
    with VllmServer("small-context", *options) as server:
        server.ask("too long by its text", shared.image_inside, text="hello " * limit)
        server.ask("too long by its images", *[shared.image_inside] * 4)
        proxy = RecordingProxy(server.url)
        settings = ["policy_config.temperature=0.01", "policy_config.max_new_tokens=16"]
        more = [*settings, "env_config.train_difficulty_max_steps.easy=30"]
        trajectories, output = shared.collect("small-context", proxy.url, *more)
        check(
            f"context has {limit} tokens" in output,
            f"small-context: no warning names the context of {limit} tokens: {output[:600]}",
        )
        for number, trajectory in enumerate(trajectories):
            decided, last = decided_steps(trajectory), trajectory[-1]
            check(len(decided) >= 2, f"small-context: trajectory {number} kept {len(decided)} steps")
            check(last["response"] is None, f"small-context: trajectory {number} did not end because of its length")
            ending = trajectory[0]["trajectory_metadata"]["ending"]
            check("too long for the model" in ending, f"small-context: trajectory {number} ends with {ending!r}")
        steps = check_tokens("small-context", trajectories, proxy)
        phase(f"vllm: small-context: warned, kept {steps} steps, every episode ended as too long for the model")
        check_reply_longer_than_context(shared, proxy, limit)


def check_reply_longer_than_context(shared: Collection, proxy: RecordingProxy, limit: int) -> None:
    """vLLM refuses every request whose max_tokens exceeds the context. That must not cost any episode."""
    code, output = shared.rollout("long-reply", proxy.url, f"policy_config.max_new_tokens={limit + 1000}")
    path = iteration_file(SAVE_PATH, shared.iteration)
    lost = [outcome(one) for one in load(path)["trajectories"]] if path.exists() else []
    check(
        "infra_lost" not in lost,
        f"small-context: with max_new_tokens above the context, outcomes are {lost} (exit code {code})",
    )
    phase(f"vllm: small-context: max_new_tokens above the context ended with exit code {code} and lost nothing")


CONFIGURATIONS = {
    "plain": check_plain,
    "no-media": check_without_media_path,
    "api-key": check_api_key,
    "small-context": check_small_context,
}


def main() -> None:
    shared = Collection()
    chosen = os.environ.get("CONFIGURATIONS", " ".join(CONFIGURATIONS)).split()
    run_checks(*[functools.partial(CONFIGURATIONS[name], shared) for name in chosen])


if __name__ == "__main__":
    main()
