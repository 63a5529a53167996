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
ALLOWED = WORK / "lr=1e-6 ü"
FIRST_PROMPT_TOKENS = OUT / "first-prompt-tokens"  # written by `plain`, used by `small-context`
TOKENIZER = Tokenizer.from_file(str(OUT / "model" / "tokenizer.json"))
VISION_START, END = TOKENIZER.token_to_id("<|vision_start|>"), TOKENIZER.token_to_id("<|im_end|>")


class Collection:
    """The farm, the tasks and the folders that all configurations share. Each has its own save path below `ALLOWED`."""

    def __init__(self):
        empty_folder(WORK)
        self.image_inside, self.image_outside = ALLOWED / "inside.png", WORK / "outside" / "outside.png"
        for path in [self.image_inside, self.image_outside]:
            path.parent.mkdir()
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

    def rollout(self, name: str, url: str, *more: str, env: dict | None = None) -> tuple[int, str]:
        settings = ["judge=reference", "policy_config.base_model=tiny", "policy_config.top_k=-1"]
        settings += ["env_config.train_difficulty_max_steps.easy=6", "env_config.task_timeout_minutes=5"]
        command = rollout_command(ALLOWED / name, self.tasks, self.farm_port, url, *settings, *more)
        return run(f"rollout-{name}", command, env, seconds=400)

    def collect(self, name: str, url: str, *more: str, env: dict | None = None) -> tuple[list, str]:
        """Runs a rollout that must succeed. Returns its trajectories and its output."""
        code, output = self.rollout(name, url, *more, env=env)
        last = "\n".join(output.splitlines()[-12:])
        check(code == 0, f"{name}: rollout ended with exit code {code}:\n{last}")
        trajectories = load(iteration_file(ALLOWED / name, 0))["trajectories"]
        check(len(trajectories) == 3, f"{name}: {len(trajectories)} trajectories instead of 3")
        lost = [outcome(trajectory) for trajectory in trajectories if outcome(trajectory) not in ("success", "failure")]
        check(not lost, f"{name}: outcomes {lost}, but only success and failure are expected")
        return trajectories, output


def decided_steps(trajectory: list) -> list[tuple[dict, dict]]:
    """Returns the steps that have a reply, with their extras."""
    extras = trajectory[0]["trajectory_metadata"]["step_extras"]
    return [(step, extra) for step, extra in zip(trajectory, extras) if step["response"] is not None]


def check_tokens(name: str, trajectories: list, proxy: RecordingProxy) -> int:
    """Checks what is saved of every step with what vLLM had and sent. Returns the number of steps."""
    # A prompt names its task and step, so the ids of its tokens identify the exchange.
    sent = collections.defaultdict(list)
    for choice in proxy.completed():
        logprobs = [entry["logprob"] for entry in choice["logprobs"]["content"]]
        sent[tuple(choice["prompt_token_ids"])].append((choice["token_ids"], logprobs, choice["finish_reason"]))
    steps = [pair for trajectory in trajectories for pair in decided_steps(trajectory)]
    check(steps, f"{name}: no step has a reply")
    for number, (step, extra) in enumerate(steps):
        where = f"{name}: step {number}"
        saved = (extra["token_ids"], extra["logprobs"], extra["finish_reason"])
        wanted = sent[tuple(extra["prompt_token_ids"])]
        check(saved in wanted, f"{where}: vLLM sent {wanted}, saved are {saved}")
        check_reply(where, step["response"].raw_response, extra)
        check_prompt(where, step["response"].raw_prompt, extra)
    return len(steps)


def check_reply(where: str, reply: str, extra: dict) -> None:
    """Checks that the tokens are the text, and that the logprobs are those that the model was made with."""
    ids, logprobs = extra["token_ids"], extra["logprobs"]
    check(len(ids) == len(logprobs) > 1, f"{where}: {len(ids)} token ids, {len(logprobs)} logprobs")
    text = TOKENIZER.decode([number for number in ids if number != END], skip_special_tokens=False)
    check(text == reply, f"{where}: the tokens are {text!r}, the reply {reply!r}")
    shares = list(make_model.REPLIES.values())
    nearest = min(abs(logprobs[1] - math.log(share)) for share in shares)
    check(nearest < 0.05, f"{where}: logprob {logprobs[1]} is none of the model's {shares}")


def check_prompt(where: str, raw_prompt: str, extra: dict) -> None:
    """Checks that the saved prompt has the images that vLLM had, as files that exist under exactly that path."""
    urls, shown = image_urls(json.loads(raw_prompt)), extra["prompt_token_ids"].count(VISION_START)
    check(len(urls) == shown, f"{where}: {len(urls)} images in raw_prompt, {shown} in the tokens of the prompt")
    missing = [url for url in urls if not Path(url.removeprefix("file://")).is_file()]
    check(not missing, f"{where}: raw_prompt names files that do not exist as written: {missing}")


def transports(proxy: RecordingProxy, status: int) -> set[str]:
    urls = [url for exchange in proxy.exchanges if exchange.status == status for url in exchange.image_urls()]
    return {url.split(":", 1)[0] for url in urls}


def check_plain(shared: Collection) -> None:
    with VllmServer("plain", "--allowed-local-media-path", str(ALLOWED)) as server:
        server.expect(200, "file inside the allowed folder", shared.image_inside)
        server.expect(500, "missing file", ALLOWED / "missing.png")
        server.expect(400, "file outside the allowed folder", shared.image_outside)
        server.expect(400, "max_tokens above the context", max_tokens=100_000)
        server.expect(200, "max_tokens that is clipped", text="hello " * 100, max_tokens=32_760)
        server.expect(400, "too long", text="hello " * 40_000)
        proxy = RecordingProxy(server.url)
        trajectories, _ = shared.collect("plain", proxy.url)
        check(transports(proxy, 200) == {"file"}, f"plain: images were sent as {transports(proxy, 200)}, not as files")
        steps = check_tokens("plain", trajectories, proxy)
        longest = max(len(decided_steps(one)[0][1]["prompt_token_ids"]) for one in trajectories)
        FIRST_PROMPT_TOKENS.write_text(str(longest))
        phase(f"vllm: plain: {steps} steps have vLLM's token ids, logprobs and prompts; images went as files")


def check_without_media_path(shared: Collection) -> None:
    with VllmServer("no-media") as server:
        server.expect(500, "local files are not allowed", shared.image_inside)
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
    options = ["--api-key", KEY, "--limit-mm-per-prompt", '{"image": 1}', "--allowed-local-media-path", str(ALLOWED)]
    with VllmServer("api-key", *options, key=KEY) as server:
        server.expect(401, "wrong key", shared.image_inside, key="wrong")
        server.expect(401, "missing key", shared.image_inside, key=None)
        server.expect(400, "too many images", shared.image_inside, shared.image_inside)
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


def check_small_context(shared: Collection) -> None:
    # The first prompt and a reply fit, then prompts with one image for a few steps; a second image never does.
    check(FIRST_PROMPT_TOKENS.exists(), "small-context: run the configuration `plain` first, which measures a prompt")
    limit = int(FIRST_PROMPT_TOKENS.read_text()) + 120
    options = ["--max-model-len", str(limit), "--allowed-local-media-path", str(ALLOWED)]
    with VllmServer("small-context", *options) as server:
        server.expect(400, "too long by its text", shared.image_inside, text="hello " * limit)
        server.expect(400, "too long by its images", *[shared.image_inside] * 4)
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
    """vLLM refuses requests whose max_tokens exceeds the context: the run does not start, and says why."""
    code, output = shared.rollout("long-reply", proxy.url, f"policy_config.max_new_tokens={limit + 1000}")
    last = output.splitlines()[-1]
    check(
        code == 1 and "policy_config.max_new_tokens" in last,
        f"small-context: exit code {code} with a reply limit that is too large: {last}",
    )
    phase("vllm: small-context: max_new_tokens above the context is refused before the run")


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
