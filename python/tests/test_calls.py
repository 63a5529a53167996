"""Requests and responses without a farm: what a real one shows rarely."""

from __future__ import annotations

import json
from typing import Any

import pytest

from webgym_rs import _calls, errors
from webgym_rs._calls import MSGPACK, Lease, Response
from webgym_rs.trajectories import Trajectory
from webgym_rs.trajectories._files import steps_of_journal

LEASE = Lease("uuid:9000", "http://node", "http://host/cdp/secret")
OBSERVED: dict[str, Any] = {
    **dict.fromkeys(("result", "error", "screenshot", "metadata", "ac_tree", "screenshot_info")),
    "settled": True,
    "settle_ms": 3,
    "unchanged": False,
}


def observed(**fields: Any) -> Response:
    return Response(200, json.dumps({**OBSERVED, **fields}).encode(), "application/json")


def step() -> _calls.Call[Any]:
    return _calls.step(LEASE, {"back": {}}, ["screenshot"], "coordinates", "png")


def test_observations_are_requested_as_msgpack() -> None:
    assert step().accept == _calls.observe(LEASE, [], "coordinates", "png").accept == MSGPACK
    assert step().parse(observed(screenshot={"format": "png", "width": 1, "height": 2, "data": "iVBO"})).screenshot


def test_addresses_of_a_lease_are_optional_and_not_printed() -> None:
    call = _calls.acquire(5, 1, {})
    lease = {"instance_id": "u:9000", "node": "n"}

    def parse(**more: str) -> Lease:
        return call.parse(Response(200, json.dumps({**lease, **more}).encode(), "application/json"))

    assert parse() == Lease("u:9000", "n")
    full = parse(cdp_url="c-secret", live_url="l-secret", live_control_url="m-secret", added_later="x")
    assert (full.cdp_url, full.live_url, full.live_control_url) == ("c-secret", "l-secret", "m-secret")
    assert "secret" not in repr(full)


def test_lost_browser_during_a_step_is_raised() -> None:
    lost, failed = {"code": "instance_lost", "detail": "gone"}, {"code": "element_not_found", "detail": "no 3"}
    with pytest.raises(errors.InstanceLost, match="gone"):
        step().parse(observed(error=lost))
    assert isinstance(step().parse(observed(error=failed)).error, errors.ElementNotFound)


def test_steps_are_never_repeated_and_leases_have_a_key() -> None:
    assert not step().repeatable
    assert not _calls.execute(LEASE, {"back": {}}).repeatable
    first, second = (_calls.acquire(5, 1.0, {}) for _ in range(2))
    assert first.repeatable
    assert first.query["idempotency_key"] != second.query["idempotency_key"]


def test_error_without_a_known_code_is_kept() -> None:
    for body, text in [(b"<html>Bad gateway", "Bad gateway"), (b'{"detail": "odd", "code": "new_code"}', "odd")]:
        with pytest.raises(errors.UnknownFarmError, match=text):
            _calls.info().parse(Response(502, body, ""))
    with pytest.raises(errors.UnknownFarmError, match="something else than JSON"):
        _calls.info().parse(Response(200, b"<html>", ""))


def test_secret_address_is_not_shown() -> None:
    assert "secret" not in repr(LEASE)


def test_step_that_the_model_did_not_decide_has_no_response() -> None:
    seen = {"image_path": "a.png", "ac_tree": None, "title": "t", "url": "u"}
    empty = {"raw_response": "", "answering_tokens": {}, "raw_prompt": ""}
    action = {"key": "invalid_step", "arguments": {}, "action_string": ""}
    reward = {"reward": 0, "evaluation": "", "is_blocked": False, "submit": False, "submission_judgment": None}
    step = {"observation": seen, "action": action, "response": empty, "reward": reward, "extras": {"logprobs": [None]}}
    task = {"task_name": "x", "extra": {"kept": 1}}
    (first,) = steps_of_journal({"task": task, "steps": [step], "metadata": {"outcome": "infra_lost"}})
    assert first["response"] is None
    assert first["trajectory_metadata"]["task_extra"] == {"kept": 1}
    (extras,) = first["trajectory_metadata"]["step_extras"]
    assert str(extras["logprobs"]) == "[nan]"


@pytest.mark.parametrize("outcome", ["infra_lost", "judge_error", "cancelled", "replay_miss"])
def test_trajectory_without_a_judged_end_is_masked(outcome: str) -> None:
    trajectory = Trajectory("train", 0, 0, [], {"outcome": outcome})
    assert (trajectory.is_masked, trajectory.reward) == (True, None)
