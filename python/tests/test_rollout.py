"""`wg.rollout` runs the program, delivers what `wg.load` reads, and ends with its parent."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgpack
import pytest
from conftest import wait_until

import webgym_rs as wg
from webgym_rs._process import SupervisedProcess

ANSWER = (
    'Action: answer\n<tool_call>\n{"name": "computer_use", "arguments": {"action": "answer", "text": "42"}}\n</tool_call>'
)


class Policy(BaseHTTPRequestHandler):
    """Answers every task at once."""

    calls = 0

    def do_GET(self) -> None:
        self._send({"data": [{"id": "sim"}]})

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        Policy.calls += 1
        self._send({"choices": [{"message": {"role": "assistant", "content": ANSWER}, "finish_reason": "stop"}]})

    def _send(self, body: dict[str, Any]) -> None:
        encoded = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(encoded)))
        self.end_headers()
        self.wfile.write(encoded)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def policy() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Policy) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture
def overrides(tmp_path: Path, site: str, farm: wg.Farm, policy: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Settings of a run of four tasks on the farm of all tests."""
    task = {"website": f"{site}/", "domain": "d", "subdomain": "s", "difficulty": 1}
    answers = {"evaluator_reference": ["seen"], "definite_answer": "42"}
    lines = [json.dumps({"task_id": number, "task_name": f"look {number}", **task, **answers}) for number in range(4)]
    (tmp_path / "tasks.jsonl").write_text("\n".join(lines))
    host, port = urlsplit(farm.url).hostname, urlsplit(farm.url).port
    monkeypatch.setenv("CPU_CLUSTER_TOKEN", farm._api_key)
    return [
        f"save_path={tmp_path / 'run'}",
        f"data_path={tmp_path}",
        "env_config.train_tasks=tasks.jsonl",
        "env_config.train_tasks_rollout_size=4",
        "env_config.server_size=2",
        "env_config.completion_threshold=1.0",
        f"env_config.host_ip={host}",
        f"env_config.master_port={port}",
        f"env_config.vllm_server_url={policy}",
        "env_config.monitor_port=null",
        "judge=reference",
        "seed=7",
    ]


def test_items_equal_the_trajectories_of_the_file(overrides: list[str], tmp_path: Path) -> None:
    with wg.rollout(overrides=overrides, images=True) as rollout:
        items = list(rollout)
        result = rollout.wait()
    assert (result["trajectories"], result["split"]) == (4, "train")
    (iteration,) = wg.load(tmp_path / "run")
    streamed = {item.trajectory.index: item.trajectory for item in items}
    assert streamed == {trajectory.index: trajectory for trajectory in iteration}
    assert [item.rewards for item in items] == [[1]] * 4
    for item in items:
        assert item.images is not None
        ((image,),) = item.images
        assert image == Path(item.trajectory.steps[0].observation.image_path).read_bytes()


def test_groups_are_complete(overrides: list[str]) -> None:
    with wg.rollout(overrides=[*overrides, "env_config.group_size=2"]) as rollout:
        groups = list(rollout)
    assert sorted(group.group_id or "" for group in groups) == [f"train-0-{number}" for number in range(4)]
    assert all(len(group.trajectories) == 2 and group.is_complete for group in groups)


def test_policy_calls_pause(overrides: list[str]) -> None:
    limits = ["env_config.max_staleness=0", "env_config.stream_batch=1"]
    with wg.rollout(overrides=[*overrides, *limits], manual=True) as rollout:
        items = iter(rollout)
        first = next(items)
        with rollout.paused(deadline=60) as status:
            assert status.is_paused
            assert status.calls_in_flight == 0
            calls = Policy.calls
            rollout.acknowledge(first)
            wait_until(lambda: rollout.status()["start_limit"]["started"] == 2, "the next episode starts")
            time.sleep(1)
            assert Policy.calls == calls
        assert not rollout.status()["is_paused"]
        for item in items:
            rollout.acknowledge(item)
    assert Policy.calls > calls


def test_example_trains_on_all_items(overrides: list[str], tmp_path: Path, policy: str) -> None:
    example = Path(__file__).resolve().parent.parent / "examples" / "stream.py"
    settings = [setting for setting in overrides if not setting.startswith("save_path")]
    command = [sys.executable, example, tmp_path / "run", policy, *settings]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    first, second, end = done.stdout.splitlines()
    assert first == "update with 3 rewards, mean 1.00, 0 masked"
    assert second == "update with 1 rewards, mean 1.00, 0 masked"
    assert end.startswith("the run has ended:")


def test_failed_start_has_the_reason(overrides: list[str]) -> None:
    with pytest.raises(wg.RolloutError, match="server_sise"):
        wg.rollout(overrides=[*overrides, "env_config.server_sise=1"])
    with pytest.raises(wg.RolloutError, match="needs env_config.stream_batch"):
        wg.rollout(overrides=[*overrides, "env_config.max_staleness=1"])


def test_killed_run_is_an_error_and_can_be_resumed(overrides: list[str]) -> None:
    limits = ["env_config.max_staleness=0", "env_config.stream_batch=1"]
    with wg.rollout(overrides=[*overrides, *limits]) as rollout:
        items = iter(rollout)
        seen = [next(items), next(items)]
        os.kill(rollout.pid, signal.SIGKILL)
        with pytest.raises(wg.RolloutError, match="status -9"):
            list(items)
    with wg.rollout(overrides=overrides, resume=True) as rollout:
        rest = list(rollout)
    assert rest[0] == seen[1], "the second item was taken, but not acknowledged"
    assert len({item.cursor for item in seen + rest}) == 4


CONSUMER = """
import os, signal, sys
import webgym_rs as wg
rollout = wg.rollout(overrides=sys.argv[1:], manual=True)
print(rollout.pid, next(iter(rollout)).cursor, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_run_ends_with_its_killed_consumer(overrides: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CONSUMER, *overrides], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    pid, cursor = done.stdout.split()
    wait_until(lambda: not Path(f"/proc/{pid}").exists(), "the run ends with the process that started it", 60)
    with wg.rollout(overrides=overrides, resume=True) as rollout:
        items = list(rollout)
    assert items[0].cursor == cursor
    assert len(items) == 4


def test_run_without_stream_returns_its_result(overrides: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    handle = SupervisedProcess._read_events

    def read_late(process: SupervisedProcess) -> None:
        process._process.wait()
        time.sleep(0.5)
        handle(process)

    # The events of a program may be read long after it has ended.
    monkeypatch.setattr(SupervisedProcess, "_read_events", read_late)
    with wg.rollout(overrides=overrides, stream=False) as rollout:
        with pytest.raises(wg.RolloutError, match="stream=True"):
            next(iter(rollout))
        assert rollout.wait(120)["trajectories"] == 4


class BrokenStream(BaseHTTPRequestHandler):
    """Breaks the connection in the second item, and refuses a wrong cursor."""

    acknowledged: list[str] = []
    requested: list[str | None] = []

    def do_GET(self) -> None:
        after = parse_qs(urlsplit(self.path).query).get("after", [None])[0]
        self.requested.append(after)
        if after == "wrong":
            return self._send(409, json.dumps({"detail": "cursor wrong belongs to another run"}).encode())
        first, second = (msgpack.packb(_message(cursor)) for cursor in ("c1", "c2"))
        end = msgpack.packb({"type": "end", "reason": "finished", "detail": None})
        heartbeat = msgpack.packb({"type": "heartbeat"})
        assert first and second and end and heartbeat  # noqa: PT018
        return self._send(
            200, first + second[:20] if after is None else heartbeat + second + end, missing=100 * (after is None)
        )

    def do_POST(self) -> None:
        self.acknowledged.append(json.loads(self.rfile.read(int(self.headers["content-length"])))["cursor"])
        self._send(200, b"{}")

    def _send(self, status: int, body: bytes, missing: int = 0) -> None:
        self.send_response(status)
        self.send_header("content-length", str(len(body) + missing))
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        pass


def _message(cursor: str) -> dict[str, Any]:
    sent = {"split": "train", "iteration": 0, "trajectory_index": 1, "group_id": None, "is_masked": True, "reward": None}
    metadata = {"outcome": "infra_lost"}
    return {"type": "trajectory", "cursor": cursor, "trajectory": {**sent, "steps": [], "task": {}, "metadata": metadata}}


def test_broken_connection_is_continued_with_the_cursor() -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), BrokenStream) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        with wg.TrajectoryStream(url) as stream:
            items = list(stream)
        assert [item.cursor for item in items] == ["c1", "c2"]
        assert (items[0].rewards, items[0].trajectory.is_masked) == ([None], True)
        assert BrokenStream.requested == [None, "c1"]
        assert BrokenStream.acknowledged == ["c1", "c2"]
        with pytest.raises(wg.StreamError, match="another run"), wg.TrajectoryStream(url, after="wrong") as stream:
            next(stream)
        server.shutdown()
    with pytest.raises(wg.StreamUnreachable), wg.TrajectoryStream(url, reconnect_seconds=0.1) as stream:
        next(stream)
