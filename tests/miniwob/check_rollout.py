"""Scores a scripted policy on MiniWoB with `webgym tasks import miniwob` and `webgym rollout judge=program`.

The policy solves click-test; in click-test-2 it clicks the right button with even seeds and the wrong one with odd seeds.
"""

import json
import os
import re
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler
from pathlib import Path

from process import check, empty_folder
from site_pages import Server, Site

OUT = Path(__file__).resolve().parents[2] / "target" / "miniwob" / "rollout"
SEEDS = 4
EXPECTED = {f"click-test-{seed}": 1 for seed in range(SEEDS)} | {
    f"click-test-2-{seed}": 1 - seed % 2 for seed in range(SEEDS)
}


def choose(prompt: str) -> dict:
    """Returns the click that the first page of an episode gets."""
    page, seed = re.search(r"/miniwob/([a-z0-9-]+)\.html\?seed=(\d+)", prompt).groups()
    label = "Click Me!" if page == "click-test" else ["ONE", "TWO"][int(seed) % 2]
    elements = prompt.rsplit("Numbered elements:", 1)[-1]
    mark = re.search(rf"id: (\d+), text: {re.escape(label)}, tag: button", elements)
    return {"action": "click", "element_id": int(mark[1])}


class Policy(BaseHTTPRequestHandler):
    """A chat server with the API of vLLM: clicks once, then answers."""

    def do_GET(self) -> None:
        self._send({"object": "list", "data": [{"id": "scripted", "object": "model"}]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        has_acted = any(message["role"] == "assistant" for message in body["messages"])
        action = {"action": "answer", "text": "done"} if has_acted else choose(text_of(body["messages"]))
        call = json.dumps({"name": "web_interaction", "arguments": action})
        message = {"role": "assistant", "content": f"Action: {action['action']}\n<tool_call>\n{call}\n</tool_call>"}
        self._send(
            {"id": "1", "object": "chat.completion", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
        )

    def _send(self, value: dict) -> None:
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_) -> None:
        pass


def text_of(messages: list[dict]) -> str:
    parts = []
    for message in messages:
        content = message["content"]
        parts += [content] if isinstance(content, str) else [part["text"] for part in content if part["type"] == "text"]
    return "\n".join(parts)


def webgym(*arguments: object) -> str:
    command = [os.environ["WEBGYM"], *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    check(done.returncode == 0, f"{command} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def main() -> None:
    html = Path(sys.argv[1])
    site = Site(html)
    policy = Server(("127.0.0.1", 0), Policy)
    threading.Thread(target=policy.serve_forever, daemon=True).start()
    folder = empty_folder(OUT)
    pages = ["--page", "click-test", "--page", "click-test-2"]
    webgym(
        "tasks", "import", "miniwob", html, "--base-url", site.url, "--seeds", SEEDS, *pages, "-o", folder / "tasks.jsonl"
    )
    webgym(
        "--quiet", "rollout", "--allow-private-network", "--config-name=rollout_test", "judge=program",
        "context_config.interaction_mode=set_of_marks", f"env_config.vllm_server_url=http://127.0.0.1:{policy.server_port}",
        "env_config.server_size=2", f"save_path={folder / 'run'}", f"data_path={folder}", "env_config.test_tasks=tasks.jsonl",
    )  # fmt: skip
    rewards = {}
    for trajectory in json.loads(
        webgym("trajectories", "ls", folder / "run", "--split", "test", "--iteration", 0, "--json")
    ):
        rewards[trajectory["task_id"]] = trajectory["reward"]
    check(rewards == EXPECTED, f"the rewards are {rewards}, not {EXPECTED}")
    print(f"test-miniwob: rollout with the page's own reward: {sum(rewards.values())} of {len(rewards)} solved, as scripted")


main()
