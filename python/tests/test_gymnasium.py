"""The Gymnasium environments on the practice sites, with Gymnasium's own checks."""

from __future__ import annotations

import gc
import math
import os
import signal
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy
import pytest
from conftest import FARM_ARGUMENTS, Practice, leases, wait_until
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode
from test_leases import browser_processes, key_of

import webgym_rs as wg
from webgym_rs.errors import ReplayMiss
from webgym_rs.gymnasium import ACTIONS, Answer, Ended, ReferenceJudge, TaskEnv, TaskVectorEnv, load_tasks

VECTOR: dict[str, Any] = {"vectorization_mode": "vector_entry_point"}
WAIT = wg.page_down()


@pytest.fixture(scope="module")
def gym_farm() -> Iterator[wg.Farm]:
    with wg.serve(4, arguments=FARM_ARGUMENTS) as farm:
        yield farm


@pytest.fixture
def settings(gym_farm: wg.Farm, practice: Practice) -> dict[str, Any]:
    return {"tasks": practice.easy_tasks(), "farm": gym_farm.url, "api_key": key_of(gym_farm)}


def structured(name: str, element: int = 0, text: str = "") -> dict[str, Any]:
    return {"action": ACTIONS.index(name), "element": element, "point": numpy.zeros(2, numpy.float32), "text": text}


def test_check_env_passes(practice: Practice) -> None:
    small = {"viewport": {"width": 640, "height": 480}}
    env = gymnasium.make(
        "webgym_rs/Task-v0", tasks=practice.easy_tasks(), arguments=FARM_ARGUMENTS, session=small, render_mode="rgb_array"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # check_env closes the environment.
        check_env(env.unwrapped)


def test_answers_are_judged_by_the_reference(settings: dict[str, Any]) -> None:
    task = settings["tasks"][0]
    for answer, reward in [(f"It is {task['definite_answer']}.", 1.0), ("I do not know", 0.0)]:
        env = gymnasium.make("webgym_rs/Task-v0", **settings)
        observation, info = env.reset(options={"task_id": task["task_id"]})
        assert observation["goal"] == task["task_name"]
        assert observation["url"].rstrip("/") == task["website"].rstrip("/")
        assert observation["screenshot"].shape == (768, 1280, 3)
        assert observation in env.observation_space
        assert info["mask"]
        _, got, terminated, truncated, info = env.step(structured("answer", text=answer))
        assert (got, terminated, truncated) == (reward, True, False)
        assert info["answer"] == answer
        env.close()


def test_actions_of_every_form(settings: dict[str, Any], site: str) -> None:
    tasks = [{"task_name": "Order", "website": f"{site}/", "definite_answer": "x"}]
    chosen: dict[str, Any] = {**settings, "tasks": tasks}
    env = TaskEnv(**chosen, screenshot="lazy", max_steps=50)
    env.reset()
    env.step(structured("type", element=1, text="Ada"))
    observation, *_ = env.step(structured("press_enter"))
    assert observation["url"] == f"{site}/ordered?name=Ada"
    assert isinstance(observation["screenshot"], wg.Screenshot)
    observation, *_ = env.step(structured("back"))
    assert "text: Name" in observation["ac_tree"]
    *_, info = env.step(wg.click(id=99))
    assert "no element 99" in info["error"]
    observation, *_ = env.step(structured("goto", text=f"{site}/other"))
    assert observation["url"] == f"{site}/other"
    *_, info = env.step("I do not know what to do")
    assert info["error"]
    call = '<tool_call>{"name": "computer_use", "arguments": {"action": "wait", "time": 0.1}}</tool_call>'
    *_, truncated, info = env.step(call)
    assert (truncated, info["error"]) == (False, "")
    call = '<tool_call>{"name": "computer_use", "arguments": {"action": "terminate", "status": "success"}}</tool_call>'
    _, _, terminated, *_ = env.step(call)
    assert terminated
    env.close()


def test_step_limit_truncates_and_calls_the_reward(settings: dict[str, Any]) -> None:
    seen: list[Ended] = []

    def reward(ended: Ended) -> float:
        seen.append(ended)
        return 0.25

    env = TaskEnv(**settings, max_steps=2, reward=reward, screenshot="none")
    env.reset(seed=1)
    assert env.session_id is not None
    assert env.step(WAIT)[1:4] == (0.0, False, False)
    assert env.step(WAIT)[1:4] == (0.25, False, True)
    assert env.session_id is None
    assert seen[0].answer is None
    assert len(seen[0].actions) == 2
    env.close()


def test_seed_chooses_the_tasks(settings: dict[str, Any]) -> None:
    env = TaskEnv(**settings, screenshot="none")
    first = [env.reset(seed=7)[0]["goal"], *(env.reset()[0]["goal"] for _ in range(3))]
    assert [env.reset(seed=7)[0]["goal"], *(env.reset()[0]["goal"] for _ in range(3))] == first
    assert len(set(first)) > 1
    env.close()


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_vector_env_autoreset(settings: dict[str, Any], gym_farm: wg.Farm, mode: AutoresetMode) -> None:
    envs = gymnasium.make_vec("webgym_rs/Task-v0", 3, **VECTOR, **settings, max_steps=2, autoreset_mode=mode)
    assert envs.metadata["autoreset_mode"] == mode
    observations, infos = envs.reset(seed=3)
    assert observations in envs.observation_space
    assert observations["screenshot"].shape == (3, 768, 1280, 3)
    assert infos["mask"].all()
    *_, truncated, infos = envs.step([WAIT, Answer("?"), WAIT])
    assert list(truncated) == [False, False, False]
    _, rewards, terminated, truncated, infos = (
        envs.step([WAIT] * 3) if mode is not AutoresetMode.DISABLED else (*resume(envs),)
    )
    assert list(truncated) == [True, False, True]
    assert list(terminated) == [False] * 3
    assert numpy.isfinite(rewards).all()
    if mode is AutoresetMode.SAME_STEP:
        assert list(infos["_final_obs"]) == [True, False, True]
        assert infos["final_obs"][0]["goal"]
        assert len(leases(gym_farm)) == 3
    envs.close()
    assert leases(gym_farm) == []


def resume(envs: Any) -> Any:
    """With autoreset disabled, an ended episode must be reset before the next step."""
    with pytest.raises(RuntimeError, match="environment 1 has ended"):
        envs.step([WAIT] * 3)
    envs.reset(options={"reset_mask": numpy.array([True, True, True])})
    envs.step([WAIT, WAIT, WAIT])
    envs.reset(options={"reset_mask": numpy.array([False, True, False])})
    return envs.step([WAIT, WAIT, WAIT])


def test_vector_env_takes_sampled_actions(settings: dict[str, Any]) -> None:
    envs = TaskVectorEnv(2, **settings, screenshot="lazy")
    envs.reset(seed=1)
    envs.action_space.seed(1)
    for _ in range(3):
        observations, *_ = envs.step(envs.action_space.sample())
        assert observations in envs.observation_space
    with pytest.raises(ValueError, match="1 actions for 2"):
        envs.step([WAIT])
    envs.close()


def test_many_episodes_leave_no_lease(settings: dict[str, Any], gym_farm: wg.Farm) -> None:
    episodes = int(os.environ.get("WEBGYM_EPISODES", "16"))
    envs = TaskVectorEnv(4, **settings, screenshot="none", max_steps=1, autoreset_mode=AutoresetMode.SAME_STEP)
    envs.reset(seed=1)
    for _ in range(episodes // 4):
        _, _, _, truncated, infos = envs.step([WAIT] * 4)
        assert truncated.all()
        assert not infos["final_info"]["infra_lost"].any()
    assert len(leases(gym_farm)) == 4
    envs.close()
    assert leases(gym_farm) == []


def test_forgotten_environment_releases(settings: dict[str, Any], gym_farm: wg.Farm) -> None:
    env = TaskEnv(**settings, screenshot="none")
    env.reset()
    assert len(leases(gym_farm)) == 1
    del env
    gc.collect()
    wait_until(lambda: leases(gym_farm) == [], "the finaliser releases the lease")
    wait_until(lambda: "webgym-episodes" not in names_of_threads(), "the event loop ends")


def names_of_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate()]


def test_lost_infrastructure_is_masked(practice: Practice) -> None:
    with wg.serve(2, arguments=[*FARM_ARGUMENTS, "--disable-recovery"]) as farm:
        given: dict[str, Any] = {"tasks": practice.easy_tasks(), "farm": farm.url, "api_key": key_of(farm), "wait": 0.0}
        envs = TaskVectorEnv(2, **given)
        envs.reset(seed=1)
        assert farm._process is not None
        for pid in browser_processes(farm._process.pid):
            os.kill(pid, signal.SIGKILL)
        for _ in range(2):
            observations, rewards, terminated, truncated, infos = envs.step([WAIT] * 2)
            assert observations in envs.observation_space
            assert all(map(math.isnan, rewards))
            assert list(terminated) == [False, False]
            assert list(truncated) == [True, True]
            assert infos["infra_lost"].all()
            assert not infos["mask"].any()
            # The next step resets, which finds no session either; the step after it is lost again.
            _, _, _, truncated, infos = envs.step([WAIT] * 2)
            assert not truncated.any()
        envs.close()
        env = TaskEnv(**given)
        with pytest.raises(wg.InfrastructureError):
            env.reset()
        env.close()


def test_lost_session_is_retried_on_reset(settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    env = TaskEnv(**settings, screenshot="none")
    step, failures = wg.aio.Session.step, [wg.InstanceLost("lost"), wg.FarmUnreachable("gone")]

    async def failing(self: Any, *arguments: Any, **options: Any) -> Any:
        if failures:
            raise failures.pop()
        return await step(self, *arguments, **options)

    monkeypatch.setattr(wg.aio.Session, "step", failing)
    _, info = env.reset()
    assert not info["infra_lost"]
    assert failures == []
    env.close()


def test_incomplete_archive_is_masked_and_not_retried(settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    async def failing(self: Any, *arguments: Any, **options: Any) -> Any:
        calls.append("step")
        raise ReplayMiss("GET https://shop.test/a.js is not in the archive")

    env = TaskEnv(**settings, screenshot="none")
    env.reset()
    monkeypatch.setattr(wg.aio.Session, "step", failing)
    _, reward, terminated, truncated, info = env.step(WAIT)
    assert math.isnan(float(reward))
    assert (terminated, truncated, info["mask"]) == (False, True, False)
    assert "not in the archive" in info["error"]
    calls.clear()
    with pytest.raises(ReplayMiss):
        env.reset()
    assert calls == ["step"]
    env.close()


def test_step_after_the_end_is_an_error(settings: dict[str, Any]) -> None:
    """It is the program's mistake; it must not look like lost infrastructure."""
    env = TaskEnv(**settings, screenshot="none")
    with pytest.raises(RuntimeError, match="call reset"):
        env.step(WAIT)
    env.reset(seed=1)
    env.step(Answer("?"))
    with pytest.raises(RuntimeError, match="the episode has ended"):
        env.step(WAIT)
    env.reset(seed=1)
    env.close()
    env.close()


def test_failed_reward_is_raised_and_can_be_repeated(settings: dict[str, Any], gym_farm: wg.Farm) -> None:
    failures = [OSError("the judge is down")]

    def reward(ended: Ended) -> float:
        if failures:
            raise failures.pop()
        return 0.5

    env = TaskEnv(**settings, screenshot="none", reward=reward)
    env.reset(seed=1)
    with pytest.raises(OSError, match="the judge is down"):
        env.step(Answer("?"))
    assert env.step(Answer("?"))[1:3] == (0.5, True)
    env.close()
    assert leases(gym_farm) == []


def test_wrong_actions_are_named_before_any_session_acts(settings: dict[str, Any]) -> None:
    envs = TaskVectorEnv(2, **settings, screenshot="none", max_steps=1)
    envs.reset(seed=1)
    wrong: list[tuple[Any, str]] = [
        ({**structured("wait"), "action": len(ACTIONS)}, "it must be 0 to 9"),
        ({**structured("wait"), "point": [0.5]}, "two shares"),
        ({}, "the action is {}"),
        (None, "the action is None"),
    ]
    for action, message in wrong:
        with pytest.raises((TypeError, ValueError), match=message):
            envs.step([WAIT, action])
    # Neither of them has used its only step.
    assert list(envs.step([WAIT, WAIT])[3]) == [True, True]
    # The action of an environment that is reset does not matter.
    envs.step([None, None])
    envs.close()


def test_invalid_arguments_are_named(tmp_path: Path) -> None:
    path = tmp_path / "tasks.jsonl"
    path.write_text('{"task_name": "x", "website": "example.com"}\n{"task_name": ""}\n')
    with pytest.raises(ValueError, match=r"tasks\.jsonl, line 2: task_name is ''"):
        load_tasks(path)
    path.write_text("[1]\n")
    with pytest.raises(ValueError, match=r"line 1 is \[1\]; it must be an object"):
        load_tasks(path)
    path.write_text('{"task_name": "x", "website": "example.com", "definite_answer": 7}\n')
    with pytest.raises(ValueError, match="line 1: definite_answer is 7"):
        load_tasks(path)
    path.write_text('{"task_name": "Zürich\u2028Bern", "website": "example.com"}\r\n', encoding="utf-8")
    assert load_tasks(path)[0].goal == "Zürich\u2028Bern"
    path.write_text('{"task_name": "x", "website": "example.com"}\n')
    assert load_tasks(path)[0].url == "https://example.com"
    with pytest.raises(ValueError, match="no definite_answer"):
        TaskEnv(tasks=path)
    with pytest.raises(ValueError, match="reward is 'best'"):
        TaskEnv(tasks=path, reward="best")


def test_reference_judge_is_that_of_rollout() -> None:
    judge = ReferenceJudge()
    assert judge.matches("It costs 1299 dollars", "$1,299")
    assert not judge.matches("5 miles", "5 km")
    assert judge.matches("Zürich\n", "zürich")
    judge.close()
