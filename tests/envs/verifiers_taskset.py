"""Scores practice tasks with verifiers' own OpenEnv task set and a scripted server with OpenAI's API."""

import argparse
import json
import shutil
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

N_TASKS = 4


def reply_to(messages: list[dict], answers: dict[str, str]) -> str:
    """Scrolls once, then answers. Every second task is answered wrong."""
    turns = [message for message in messages if message["role"] == "user"]
    content = turns[-1]["content"]
    text = content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
    observation = json.loads(text[text.index("{") :])["observation"]
    if len(turns) == 1:
        return json.dumps({"action_str": "scroll(0, 100)"})
    # A text that is not JSON becomes the only required field of the action.
    return f"send_msg_to_user({answers[observation['goal']]!r})"


class Model(BaseHTTPRequestHandler):
    answers: ClassVar[dict[str, str]] = {}

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        text = reply_to(request["messages"], self.answers)
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        common = {"id": "x", "created": 0, "model": "scripted"}
        if request.get("stream"):
            choice = {"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": None}
            last = {"index": 0, "delta": {}, "finish_reason": "stop"}
            chunks = [{"choices": [choice]}, {"choices": [last]}, {"choices": [], "usage": usage}]
            events = [json.dumps({**common, "object": "chat.completion.chunk", **chunk}) for chunk in chunks]
            self.respond("text/event-stream", "".join(f"data: {event}\n\n" for event in [*events, "[DONE]"]))
            return
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        body = {**common, "object": "chat.completion", "choices": [choice], "usage": usage}
        self.respond("application/json", json.dumps(body))

    def respond(self, kind: str, text: str) -> None:
        data = text.encode()
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("tasks")
    parser.add_argument("output", type=Path)
    options = parser.parse_args()
    with open(options.tasks, encoding="utf-8") as file:
        tasks = [task for task in map(json.loads, file) if task.get("definite_answer")][:N_TASKS]
    wanted = {str(task["task_id"]): float(number % 2 == 0) for number, task in enumerate(tasks)}
    Model.answers = {
        task["task_name"]: task["definite_answer"] if wanted[str(task["task_id"])] else "no" for task in tasks
    }
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    shutil.rmtree(options.output, ignore_errors=True)
    options.output.mkdir(parents=True)
    resets = ", ".join(f'{{ task_id = "{task_id}", screenshot = "none" }}' for task_id in wanted)
    config = options.output / "eval.toml"
    config.write_text(
        f"""model = "scripted"
push = false
[env.taskset]
id = "openenv"
base_url = "{options.url}"
resets = [{resets}]
[env.player]
harness = {{ id = "null" }}
runtime = {{ type = "subprocess" }}
[client]
base_url = "http://127.0.0.1:{server.server_port}/v1"
"""
    )
    program = Path(sys.executable).parent / "vf-eval"
    done = subprocess.run(
        [program, "@", config, "-o", options.output / "runs"], capture_output=True, text=True, timeout=300, check=False
    )
    traces = list((options.output / "runs").rglob("traces.jsonl"))
    assert done.returncode == 0 and traces, f"{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    episodes = [json.loads(line) for line in traces[0].read_text().splitlines()]
    assert all(episode["ok"] for episode in episodes), episodes
    got = sorted(episode["traces"][0]["rewards"]["openenv_reward"]["score"] for episode in episodes)
    assert got == sorted(wanted.values()), f"{got}: {done.stdout[-1000:]}"
    print(f"verifiers: {len(got)} tasks scored, rewards {got}")


main()
