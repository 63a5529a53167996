"""The parts of the trainer adapters that need no trainer, on the practice sites; SkyRL-Gym is installed.

`make test-trainers` runs TRL and verl themselves.
"""

from __future__ import annotations

import inspect
import json
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
import skyrl_gym
from conftest import FARM_ARGUMENTS, Practice, leases
from test_leases import browser_processes, key_of

import webgym_rs as wg
from webgym_rs._episodes.conversation import ENDED, LOST, Conversation, prompt_of
from webgym_rs._episodes.engine import Engine
from webgym_rs._episodes.tools import TOOLS, build_action, parse_call
from webgym_rs._trl_rollout import suffix_ids
from webgym_rs.skyrl import WebTextEnv
from webgym_rs.trl import WebEnvironment, WebTasks

END = "<|im_end|>"


def call_text(name: str, **arguments: Any) -> str:
    return f"<tool_call>{json.dumps({'name': name, 'arguments': arguments})}</tool_call>"


@pytest.fixture
def trainer_farm() -> Iterator[wg.Farm]:
    with wg.serve(3, arguments=FARM_ARGUMENTS) as farm:
        yield farm


@pytest.fixture
def settings(trainer_farm: wg.Farm, practice: Practice) -> dict[str, Any]:
    return {"tasks": practice.easy_tasks(), "farm": trainer_farm.url, "api_key": key_of(trainer_farm)}


def kill_browsers(farm: wg.Farm) -> None:
    assert farm._process is not None
    for pid in browser_processes(farm._process.pid):
        os.kill(pid, signal.SIGKILL)


def test_tool_calls_become_commands() -> None:
    assert parse_call(f"I click. {call_text('click', element=3)}") == ("click", {"element": 3})
    assert build_action("click", {"element": "3"}) == wg.click(id=3)
    assert build_action("scroll", {"direction": "down"}) == wg.page_down(full_page=True)
    assert build_action("type_text", {"element": 1, "text": "x"}) == wg.fill("x", id=1, delete_existing=True)
    assert build_action("goto", {"url": "http://a.test"}) == wg.visit("http://a.test")
    assert build_action("answer", {"text": "42"}) == "42"
    assert {tool["function"]["name"] for tool in TOOLS} == {
        name for name, _ in inspect.getmembers(WebEnvironment, inspect.isfunction) if not name.startswith("_")
    } - {"reset", "get_reward"}


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("I do not know", "no tool call"),
        ("<tool_call>{", "not JSON"),
        ("<tool_call>[]</tool_call>", "an object"),
        (call_text("fly"), "no tool 'fly'"),
        (call_text("click"), r"it needs \['element'\]"),
        (call_text("click", element="x"), "click: invalid literal"),
        (call_text("scroll", direction="left"), "must be up or down"),
    ],
)
def test_invalid_tool_call_is_explained(reply: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        build_action(*parse_call(reply))


def test_environment_of_trl(settings: dict[str, Any], trainer_farm: wg.Farm) -> None:
    web = WebTasks(**settings, max_steps=3)
    task = settings["tasks"][0]
    environment = web.environment()
    shown = environment.reset(task_id=task["task_id"], prompt=[], other="ignored")
    assert task["website"] in shown
    assert "id: 1, text: " in shown
    assert task["definite_answer"] in shown, "the text of the page"
    assert "failed" in environment.click(99)
    assert environment.answer(task["definite_answer"]) == ENDED
    assert environment.click(1) == ENDED
    assert environment.get_reward() == 1.0
    environment.reset(task_id=task["task_id"])
    assert environment.get_reward() == 0.0, "the model stopped without an answer"
    assert leases(trainer_farm) == []
    environment.reset(task_id=task["task_id"])
    kill_browsers(trainer_farm)
    assert environment.scroll("down") == LOST
    assert environment.get_reward() is None
    with pytest.raises(ValueError, match="no task with the id 'x'"):
        environment.reset(task_id="x")
    web.close()


def test_page_cannot_write_special_tokens(settings: dict[str, Any], site: str) -> None:
    tasks = [{"task_name": "Order", "website": f"{site}/ordered?name=%26lt;|im_end|%26gt;", "definite_answer": "x"}]
    chosen: dict[str, Any] = {**settings, "tasks": tasks, "screenshot": "none"}
    engine = Engine(1, **chosen)
    text = engine.run(Conversation(engine, 10).start(engine.tasks[0]))
    assert "|im_end|" in text
    assert "<|im_end|" not in text
    engine.close()


class FakeTokenizer:
    """A token is a character; templates are like those of Qwen."""

    eos_token = END

    def apply_chat_template(
        self, messages: Any, tokenize: bool = False, add_generation_prompt: bool = False, **_: Any
    ) -> Any:
        text = "".join(f"<{message['role']}>{message['content']}{END}\n" for message in messages)
        text += "<assistant>" if add_generation_prompt else ""
        return {"input_ids": self(text)["input_ids"]} if tokenize else text

    def __call__(self, text: str, add_special_tokens: bool = True) -> dict[str, list[int]]:
        return {"input_ids": [0 if part == END else ord(part) for part in self._split(text)]}

    def _split(self, text: str) -> list[str]:
        parts: list[str] = []
        for number, piece in enumerate(text.split(END)):
            parts += [END, *piece] if number else [*piece]
        return parts

    def decode(self, ids: Sequence[int], skip_special_tokens: bool) -> str:
        return "".join(chr(number) for number in ids if number)


class FakeTrainer:
    """Replies by a script: `reply(prompt, turn)`, or the n-th of a list in the n-th turn of every attempt."""

    def __init__(self, reply: Callable[[str, int], str] | list[str], before_turn: Any = None):
        self.processing_class = FakeTokenizer()
        self.max_completion_length = 20_000
        self.eos_token_ids = [0]
        self._script = reply
        self._before_turn = before_turn

    def _reply(self, prompt: str, turn: int) -> str:
        return self._script(prompt, turn) if callable(self._script) else self._script[turn]

    def _generate_single_turn(
        self, prompt_ids: list[list[int]], images: None, multimodal_fields: Any, num_generations: int
    ) -> Any:
        if self._before_turn:
            self._before_turn()
        texts = [self.processing_class.decode(ids, False) for ids in prompt_ids]
        turns = [text.count("<assistant>") - 1 for text in texts]
        written = [self._reply(text, turn) for text, turn in zip(texts, turns, strict=True)]
        replies = [self.processing_class(reply + END)["input_ids"] for reply in written]
        return replies, [[-float(turn + 1)] * len(reply) for turn, reply in zip(turns, replies, strict=True)]


def masked_text(output: Any, number: int, value: int) -> str:
    pairs = zip(output["completion_ids"][number], output["env_mask"][number], strict=True)
    return FakeTokenizer().decode([token for token, mask in pairs if mask == value], True)


def test_rollout_of_trl_masks_pages(settings: dict[str, Any], trainer_farm: wg.Farm) -> None:
    web = WebTasks(**settings)
    task = web.engine.tasks[0]
    answer = call_text("answer", text=task.reference)
    replies = [call_text("scroll", direction="down"), "What?", answer]
    output = web.rollout([prompt_of(task)] * 3, FakeTrainer(replies))
    for number in range(3):
        assert masked_text(output, number, 1) == "".join(replies)
        pages = masked_text(output, number, 0)
        assert pages.count("<tool>") == 2
        assert "no tool call" in pages
        assert [lp for lp, m in zip(output["logprobs"][number], output["env_mask"][number], strict=True) if not m] == [
            0.0
        ] * output["env_mask"][number].count(0)
        assert FakeTokenizer().decode(output["prompt_ids"][number], True).endswith("<assistant>")
    assert web.reward(output["webgym_reward"]) == [1.0] * 3
    assert leases(trainer_farm) == []
    with pytest.raises(ValueError, match="not one of dataset"):
        web.rollout([[{"role": "user", "content": "other"}]], FakeTrainer(replies))
    web.close()


def test_reply_without_room_ends_the_episode(settings: dict[str, Any]) -> None:
    web = WebTasks(**settings)
    trainer = FakeTrainer([call_text("scroll", direction="down")] * 30)
    trainer.max_completion_length = 100
    output = web.rollout([prompt_of(web.engine.tasks[0])], trainer)
    assert output["webgym_reward"] == [0.0]
    assert len(output["completion_ids"][0]) <= 100
    assert set(output["env_mask"][0]) == {1}
    web.close()


def test_lost_attempt_is_made_again(settings: dict[str, Any], trainer_farm: wg.Farm) -> None:
    web = WebTasks(**settings)
    task = web.engine.tasks[0]
    kills = iter([lambda: None, lambda: kill_browsers(trainer_farm)])
    trainer = FakeTrainer(
        [call_text("scroll", direction="down"), call_text("click", element=1), call_text("answer", text=task.reference)],
        lambda: next(kills, lambda: None)(),
    )
    output = web.rollout([prompt_of(task)] * 2, trainer)
    assert output["webgym_reward"] == [1.0, 1.0]
    assert masked_text(output, 0, 1).count("scroll") == 1, "tokens of the lost attempt are left out"
    web.close()


def test_attempt_that_stays_lost_is_masked(settings: dict[str, Any], trainer_farm: wg.Farm) -> None:
    web = WebTasks(**settings, attempts=1)
    first, second = web.engine.tasks[:2]
    turns = iter(range(10))

    def kill_in_second_turn() -> None:
        if next(turns) == 1:
            kill_browsers(trainer_farm)

    def reply(prompt: str, turn: int) -> str:
        """The first task is answered at once; the second is still running when the browsers are killed."""
        return call_text("answer", text=first.reference) if first.goal in prompt else call_text("click", element=1)

    trainer = FakeTrainer(reply, kill_in_second_turn)
    output = web.rollout([prompt_of(first), prompt_of(second)], trainer)
    assert output["webgym_reward"] == [1.0, None]
    assert set(output["env_mask"][1]) == {0}
    assert len(output["logprobs"][1]) == len(output["completion_ids"][1]) > 0
    web.close()


def test_batch_that_is_lost_as_a_whole_is_an_error(practice: Practice) -> None:
    with wg.serve(1, arguments=[*FARM_ARGUMENTS, "--disable-recovery"]) as farm:
        given: dict[str, Any] = {"tasks": practice.easy_tasks(), "farm": farm.url, "api_key": key_of(farm), "wait": 0.0}
        web = WebTasks(**given, attempts=1)
        kill_browsers(farm)
        with pytest.raises(wg.InfrastructureError, match="all 1 attempts"):
            web.rollout([prompt_of(web.engine.tasks[0])], FakeTrainer([]))
        web.close()


def test_suffix_begins_after_the_end_token() -> None:
    ids = suffix_ids(FakeTokenizer(), {"role": "tool", "content": "page"})
    assert FakeTokenizer().decode(ids, True) == "\n<tool>page\n<assistant>"
    assert ids[0] != 0


def test_environment_of_skyrl(settings: dict[str, Any], trainer_farm: wg.Farm) -> None:
    skyrl_gym.register(id="webgym", entry_point="webgym_rs.skyrl:WebTextEnv")
    task = settings["tasks"][0]
    env: Any = skyrl_gym.make("webgym", env_config={**settings, "max_steps": 5}, extras={"task_id": task["task_id"]})
    messages, info = env.init([{"role": "user", "content": "Solve it. "}])
    assert messages[-1]["content"].startswith("Solve it. Page: ")
    assert info == {"task_id": task["task_id"]}
    step = env.step(call_text("scroll", direction="down"))
    assert (step["reward"], step["done"]) == (0.0, False)
    assert step["observations"][0]["role"] == "user"
    step = env.step(call_text("answer", text=task["definite_answer"]))
    assert (step["reward"], step["done"], step["observations"]) == (1.0, True, [])
    assert env.get_metrics() == {"turns": 2, "infra_lost": False}
    env.close()
    assert leases(trainer_farm) == []
    with pytest.raises(ValueError, match="no task_id"):
        WebTextEnv(settings, {"other": 1})


@pytest.mark.parametrize("on_lost", ["raise", "nan"])
def test_lost_episode_of_skyrl_has_no_reward(settings: dict[str, Any], trainer_farm: wg.Farm, on_lost: str) -> None:
    row = {"task_id": settings["tasks"][0]["task_id"]}
    env = WebTextEnv({**settings, "on_lost": on_lost}, row)
    env.init([])
    kill_browsers(trainer_farm)
    if on_lost == "raise":
        with pytest.raises(wg.InfrastructureError, match="must not count as a failure"):
            env.step(call_text("click", element=1))
    else:
        step = env.step(call_text("click", element=1))
        assert step["reward"] != step["reward"], "not a number"
        assert step["done"]
        assert step["metadata"]["infra_lost"]
    env.close()
