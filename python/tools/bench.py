"""Measures the Python client: `python tools/bench.py [client] [vector] [many]`. docs/benchmarks.md has results.

client  CPU per step of the client and of a raw HTTP connection that does nothing with the response
vector  steps per second of a vector environment of 8 and of eight raw connections, each in a thread of its own: free, and
        in step, where each step waits for the slowest as in every vector environment
many    256 sessions in one process with the async client
"""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from statistics import median
from typing import Any
from urllib.parse import urlsplit

import webgym_rs as wg
from webgym_rs import aio
from webgym_rs._binary import find_binary  # pyright: ignore[reportPrivateUsage]
from webgym_rs.gymnasium import Ended, TaskVectorEnv

TURNS = 7
INCLUDE = ["metadata", "ac_tree", "screenshot"]
PATHS = ("/shop/", "/wiki/", "/jobs/", "/shop/p/brass-desk-lamp")
FARM = ["--allow-private-network"]


def practice() -> tuple[subprocess.Popen[str], str]:
    command = [str(find_binary()), "-q", "practice", "--port=0", f"--exit-with-parent={os.getpid()}"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, json.loads(process.stdout.readline())["url"]


class RawClient:
    """A session driven with the standard library: the response is read and dropped."""

    def __init__(self, farm: wg.Farm):
        self.session = farm.lease()
        self._http = http.client.HTTPConnection(urlsplit(farm.url).netloc)
        assert farm._process is not None  # pyright: ignore[reportPrivateUsage]
        key = farm._process.api_key  # pyright: ignore[reportPrivateUsage]
        self._headers = {"x-api-key": key, "accept": "application/msgpack", "content-type": "application/json"}
        self._address = {"instance_id": self.session.id, "node": self.session.node}

    def step(self, command: wg.Command) -> None:
        body = {**self._address, "command": command.to_json(), "include": INCLUDE}
        self._http.request("POST", "/step", json.dumps(body), self._headers)
        response = self._http.getresponse()
        content = response.read()
        assert response.status == 200, content


def script(url: str, number: int) -> wg.Command:
    """The step with this number: each page is visited, scrolled down and up, and hovered over."""
    page, action = PATHS[number // 4 % len(PATHS)], number % 4
    return [wg.visit(url + page), wg.page_down(), wg.page_up(), wg.hover(x=200, y=200)][action]


def cpu_per_step(steps: int, step: Callable[[int], Any]) -> float:
    before = time.process_time()
    for number in range(steps):
        step(number)
    return (time.process_time() - before) / steps * 1000


def bench_client(url: str) -> None:
    with wg.serve(2, arguments=FARM) as farm, farm.lease() as session:
        raw = RawClient(farm)
        include: Any = INCLUDE
        kinds: dict[str, Callable[[int], Any]] = {
            "raw HTTP": lambda number: raw.step(script(url, number)),
            "client": lambda number: session.step(script(url, number), include=include),
            "client, decoded": lambda number: decoded(session.step(script(url, number), include=include)),
        }
        figures: dict[str, list[float]] = {name: [] for name in kinds}
        for _ in range(TURNS):
            for name, step in kinds.items():
                figures[name].append(cpu_per_step(32, step))
        for name, values in figures.items():
            print(f"{name}: {median(values):.2f} ms CPU per step ({min(values):.2f} to {max(values):.2f})")
        extra = [ours - bare for ours, bare in zip(figures["client"], figures["raw HTTP"], strict=True)]
        print(f"the client adds {median(extra):.2f} ms CPU per step ({min(extra):.2f} to {max(extra):.2f})")


def decoded(observation: wg.Observation) -> None:
    assert observation.screenshot is not None
    assert observation.screenshot.array.size


def bench_vector(url: str) -> None:
    tasks = [{"task_name": "bench", "website": f"{url}/shop/"}]
    with wg.serve(8, arguments=FARM) as farm:
        assert farm._process is not None  # pyright: ignore[reportPrivateUsage]
        settings: dict[str, Any] = {"tasks": tasks, "farm": farm.url, "api_key": farm._process.api_key}  # pyright: ignore[reportPrivateUsage]
        figures: dict[str, list[float]] = {"raw": [], "raw in step": [], "lazy": [], "array": []}
        for _ in range(TURNS):
            figures["raw"].append(raw_rate(farm, url, in_step=False))
            figures["raw in step"].append(raw_rate(farm, url, in_step=True))
            for mode in ("lazy", "array"):
                figures[mode].append(vector_rate(url, {**settings, "screenshot": mode}))
        for name, values in figures.items():
            spread = f"{min(values):.1f} to {max(values):.1f}"
            shares = ", ".join(share_of(base, values, figures[base]) for base in ("raw", "raw in step"))
            print(f"{name}: {median(values):.1f} steps/s ({spread}), {shares}")


def share_of(base: str, values: list[float], bases: list[float]) -> str:
    ratios = [value / one for value, one in zip(values, bases, strict=True)]
    return f"{median(ratios):.2f} x {base} ({min(ratios):.2f} to {max(ratios):.2f})"


STEPS = 16


def raw_rate(farm: wg.Farm, url: str, *, in_step: bool) -> float:
    clients = [RawClient(farm) for _ in range(8)]
    for client in clients:
        client.step(wg.visit(f"{url}/shop/"))

    barrier = threading.Barrier(len(clients))

    def drive(client: RawClient) -> None:
        for number in range(STEPS):
            client.step(script(url, number))
            if in_step:
                barrier.wait()

    threads = [threading.Thread(target=drive, args=[client]) for client in clients]
    started = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rate = 8 * STEPS / (time.monotonic() - started)
    for client in clients:
        client.session.release()
    return rate


def no_reward(ended: Ended) -> float:
    return 0.0


def vector_rate(url: str, settings: dict[str, Any]) -> float:
    envs = TaskVectorEnv(8, **settings, reward=no_reward, max_steps=1000)
    envs.reset()
    started = time.monotonic()
    for number in range(STEPS):
        envs.step([script(url, number)] * 8)
    rate = 8 * STEPS / (time.monotonic() - started)
    envs.close()
    return rate


async def bench_many(url: str, count: int = 256, steps: int = 4) -> None:
    farm = aio.serve(count, arguments=FARM, ready_seconds=300)
    started = time.monotonic()
    async with farm:
        print(f"{count} sessions ready after {time.monotonic() - started:.1f} s")
        started = time.monotonic()
        sessions = await asyncio.gather(*(farm.lease(wait=300) for _ in range(count)))
        print(f"all leased after {time.monotonic() - started:.1f} s")
        started, before = time.monotonic(), time.process_time()

        async def drive(session: aio.Session) -> None:
            for number in range(steps):
                await session.step(script(url, number))

        results = await asyncio.gather(*map(drive, sessions), return_exceptions=True)
        failed = [result for result in results if result is not None]
        took, cpu = time.monotonic() - started, time.process_time() - before
        print(f"{count * steps} steps in {took:.1f} s, {cpu / count / steps * 1000:.2f} ms CPU of the client per step")
        print(f"{len(failed)} sessions failed{f', the first by {failed[0]!r}' if failed else ''}")


def main() -> None:
    chosen = sys.argv[1:] or ["client", "vector", "many"]
    sites, url = practice()
    if "client" in chosen:
        bench_client(url)
    if "vector" in chosen:
        bench_vector(url)
    if "many" in chosen:
        asyncio.run(bench_many(url))
    sites.terminate()
    sites.communicate()


if __name__ == "__main__":
    main()
