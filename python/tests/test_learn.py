"""The example that learns (examples/learn), shortened: real browsers, a policy that begins with choosing at random."""

from __future__ import annotations

import json
import math
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from webgym_rs._binary import find_binary

SYSTEM_PYTHON = "/usr/bin/python3"  # has torch
LEARN = Path(__file__).parents[2] / "examples" / "learn"
PROMPT = """Task: Open the page of the product “Brass desk lamp”.
Start website: http://shop.test/

Step 1 of at most 2.

Page: "All products" at http://shop.test/list
Numbered elements:
```
id: 1, text: Search, the shop, tag: input, type=search
id: 2, text: Brass desk lamp, tag: a
```
"""


def learn(*arguments: object) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "WEBGYM": str(find_binary()), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [SYSTEM_PYTHON, *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_policy_learns_in_real_browsers(tmp_path: Path) -> None:
    """Chance is about 3 %; the complete run, in docs/learning.md, reaches more than 90 %. The seeds are fixed."""
    size = ["--tasks", 12, "--group-size", 8, "--iterations", 2]
    done = learn(LEARN / "run", "--out", tmp_path, *size)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout.splitlines()[-1])
    assert report["first"] <= 0.15, done.stdout
    assert report["last"] >= 0.2, done.stdout


def policy(code: str) -> Any:
    done = learn("-c", f"import json, sys; sys.path.insert(0, {str(LEARN)!r}); {code}")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_prompt_is_parsed_and_first_policy_is_uniform(tmp_path: Path) -> None:
    code = f"""
from pathlib import Path
from policy import Batch, Policy, load, parse_prompt, save
page = parse_prompt([{{"role": "user", "content": [{{"type": "text", "text": {PROMPT!r}}}]}}])
policy = Policy()
policy.word_weights.data[7] = 0.25
save(policy, Path({str(tmp_path)!r}), "one")
again, version = load(Path({str(tmp_path)!r}))
print(json.dumps([page.goal, page.url, page.elements, policy(Batch([page]))[0].exp().tolist(),
                  again.word_weights[7].item(), version]))
"""
    goal, url, elements, shares, weight, version = policy(code)
    assert goal == "Open the page of the product “Brass desk lamp”."
    assert url == "http://shop.test/list"
    assert elements == [["1", "Search, the shop", "input, type=search"], ["2", "Brass desk lamp", "a"]]
    assert shares == pytest.approx([0.5, 0.5])
    assert (weight, version) == (0.25, "one")


def write_export(folder: Path, rewards: list[int | None]) -> None:
    prompt = json.dumps([{"role": "user", "content": PROMPT}])
    lines: list[str] = []
    for number, reward in enumerate(rewards):
        clicked = "2" if reward else "1"
        reply = {"response": {"raw_prompt": prompt}, "extras": {"logprobs": [math.log(0.5)]}}
        step = {**reply, "action": {"arguments": {"element_id": clicked}}}
        advantage = None if reward is None else reward - 0.5
        outcome = {1: "success", 0: "failure", None: "infra_lost"}[reward]
        metadata = {"ending": "answered", "outcome": outcome}
        fields = {"is_masked": reward is None, "advantage": advantage, "metadata": metadata}
        lines.append(json.dumps({"trajectory_index": number, "steps": [step], **fields}))
    (folder / "train.jsonl").write_text("\n".join(lines))


def test_training_prefers_what_succeeded_and_leaves_out_masked(tmp_path: Path) -> None:
    assert learn(LEARN / "train.py", "--output", tmp_path / "0").returncode == 0
    write_export(tmp_path, [1, 0, None])
    model = ["--model", tmp_path / "0"]
    done = learn(LEARN / "train.py", "--data", tmp_path, *model, "--output", tmp_path / "1", "--iteration", 1)
    assert json.loads(done.stdout)["steps"] == 2, done.stderr
    code = f"""
from pathlib import Path
from policy import Batch, load, parse_prompt
page = parse_prompt([{{"role": "user", "content": {PROMPT!r}}}])
print(json.dumps(load(Path({str(tmp_path / "1")!r}))[0](Batch([page]))[0].exp().tolist()))
"""
    assert policy(code)[1] > 0.6
