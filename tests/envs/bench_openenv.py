"""Compares `webgym env` with OpenEnv's reference BrowserGym environment: MiniWoB click-test over the same protocol, in turns.

    python bench_openenv.py WEBGYM REFERENCE_PYTHON OUTPUT [--browsers PATH] [--rounds 5] [--sessions 4]

REFERENCE_PYTHON has the package of envs/browsergym_env (OpenEnv's repository), miniwob, websockets and psutil installed. Its
server runs as in its Dockerfile; PATH is where its Playwright finds a Chromium. Both servers get the same messages from the
same plain WebSocket client, which does not read what is in the responses while it measures.
"""

import argparse
import asyncio
import json
import os
import re
import statistics
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import psutil
import websockets
from process import Process, check, free_port
from site_pages import Site


class Server:
    """A server process with its children."""

    def __init__(self, name: str, process: Process, url: str):
        self.name, self.process, self.url = name, process, url
        self.times: dict[str, list[float]] = {"reset": [], "step": []}
        self.sizes: list[int] = []

    def tree(self) -> list[psutil.Process]:
        root = psutil.Process(self.process.child.pid)
        return [root, *root.children(recursive=True)]

    def memory(self) -> tuple[float, float]:
        """Returns the proportional set size of the whole tree and of the server process alone, in MiB."""
        sizes = []
        for process in self.tree():
            try:
                sizes.append(process.memory_full_info().pss / 2**20)
            except psutil.NoSuchProcess:
                sizes.append(0.0)
        return sum(sizes), sizes[0]

    def cpu(self) -> float:
        total = 0.0
        for process in self.tree():
            try:
                times = process.cpu_times()
            except psutil.NoSuchProcess:
                continue
            total += times.user + times.system + times.children_user + times.children_system
        return total


class Session:
    def __init__(self, server: Server, socket):
        self.server, self.socket = server, socket

    async def ask(self, kind: str, data: dict) -> str:
        since = time.monotonic()
        await self.socket.send(json.dumps({"type": kind, "data": data}))
        text = await self.socket.recv()
        self.server.times[kind].append(time.monotonic() - since)
        self.server.sizes.append(len(text))
        return text


def connect(server: Server):
    # The reference server does not answer pings while it encodes an observation.
    return websockets.connect(server.url.replace("http", "ws") + "/ws", max_size=None, ping_interval=None, open_timeout=120)


async def play(server: Server, seed: int) -> None:
    """An episode: the page, an action without effect, and the right click."""
    async with connect(server) as socket:
        session = Session(server, socket)
        text = await session.ask("reset", {"seed": seed})
        bid = re.search(r"\[(\d+)\] button 'Click Me!'", text)
        check(bid is not None, f"{server.name}: there is no button in {text[-500:]}")
        await session.ask("step", {"action_str": "noop(10)"})
        text = await session.ask("step", {"action_str": f"click('{bid[1]}')"})
        data = json.loads(text)["data"]
        check(data["done"] and data["reward"] == 1.0, f"{server.name}: reward {data['reward']}, done {data['done']}")


async def open_sessions(server: Server, count: int) -> list[float]:
    """Returns the memory with 0 to `count` open episodes."""
    memory, sockets = [server.memory()], []
    for seed in range(count):
        socket = await connect(server)
        await socket.send(json.dumps({"type": "reset", "data": {"seed": seed}}))
        await socket.recv()
        sockets.append(socket)
        memory.append(server.memory())
    for socket in sockets:
        await socket.close()
    return memory


def wait_for(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=5) as response:
            return response.status == 200
    except OSError:
        return False


def start_webgym(options: argparse.Namespace, site: Site, html: Path) -> Server:
    tasks = options.output / "click-test.jsonl"
    command = [options.webgym, "tasks", "import", "miniwob", html, "--base-url", site.url, "--seeds", "20"]
    subprocess.run([*command, "--page", "click-test", "-o", tasks], check=True, capture_output=True)
    url = f"http://127.0.0.1:{free_port()}"
    command = [options.webgym, "env", "--port", url.rsplit(":", 1)[1], "--instances", options.sessions, "--judge", "program"]
    process = Process(options.output / "webgym.log", [*command, "--allow-private-network", "--tasks", tasks])
    process.wait_until(lambda: wait_for(url), 120, "health")
    return Server("webgym", process, url)


def start_reference(options: argparse.Namespace, site: Site) -> Server:
    url = f"http://127.0.0.1:{free_port()}"
    variables = {
        "BROWSERGYM_BENCHMARK": "miniwob",
        "BROWSERGYM_TASK_NAME": "click-test",
        "MINIWOB_URL": f"{site.url}/miniwob/",
        "PLAYWRIGHT_BROWSERS_PATH": str(options.browsers),
    }
    command = [options.reference, "-m", "uvicorn", "browsergym_env.server.app:app", "--host", "127.0.0.1"]
    process = Process(options.output / "reference.log", [*command, "--port", url.rsplit(":", 1)[1]], env=variables)
    process.wait_until(lambda: wait_for(url), 120, "health")
    return Server("reference", process, url)


def spread(values: list[float], unit: float = 1.0) -> str:
    values = [value / unit for value in values]
    return f"{statistics.median(values):.1f} ({min(values):.1f}-{max(values):.1f})"


async def measure(servers: list[Server], options: argparse.Namespace) -> None:
    for server in servers:
        await play(server, 0)
        server.times, server.sizes = {"reset": [], "step": []}, []
    cpu = {server.name: [] for server in servers}
    for number in range(options.rounds):
        for server in servers if number % 2 else reversed(servers):
            before = server.cpu()
            await play(server, 1 + number)
            cpu[server.name].append(server.cpu() - before)
    print(f"{options.rounds} episodes of 1 reset and 2 steps each, in turns; load {os.getloadavg()[0]:.1f}; median (minimum-maximum)")
    for server in servers:
        print(f"{server.name}: reset {spread(server.times['reset'], 0.001)} ms, step {spread(server.times['step'], 0.001)} ms, ", end="")
        print(f"observation {spread(server.sizes, 1024)} KiB, CPU of an episode {spread(cpu[server.name])} s")
    for server in servers:
        memory = await open_sessions(server, options.sessions)
        shown = ", ".join(f"{count}: {total:.0f} ({own:.0f})" for count, (total, own) in enumerate(memory))
        print(f"{server.name}: MiB (PSS) with open episodes, all processes (server alone): {shown}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("webgym")
    parser.add_argument("reference", help="the Python of the reference environment")
    parser.add_argument("output", type=Path)
    parser.add_argument("--browsers", type=Path, default=Path.home() / ".cache/ms-playwright")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sessions", type=int, default=4)
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    where = "import miniwob, os; print(os.path.join(os.path.dirname(miniwob.__file__), 'html'))"
    html = Path(subprocess.run([options.reference, "-c", where], check=True, capture_output=True, text=True).stdout.strip())
    site = Site(html)
    print(f"Python {sys.version.split()[0]}, websockets {websockets.__version__}")
    servers = [start_webgym(options, site, html), start_reference(options, site)]
    asyncio.run(measure(servers, options))


main()
