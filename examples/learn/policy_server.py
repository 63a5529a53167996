"""Serves the policy as an OpenAI-compatible chat server, for `webgym rollout`.

    python policy_server.py --model checkpoints/0 --port 8000

`/v1/chat/completions`, `/v1/models` and `/health`. Of the sampling parameters only the temperature is used; 0 takes the
best element. Replies have the header `x-policy-version`.
"""

import argparse
import hashlib
import json
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import torch
from policy import Batch, Page, Policy, load, parse_prompt

REPLY = """Memory: none
Progress: the page is open
Intention: open what the task names
Action: Click "{text}".
<tool_call>
{call}
</tool_call>"""


class Seeds:
    """A random generator for each request. It depends on the seed, the page and how often this page was asked about, and not on
    the order of requests, so that a run can be repeated."""

    def __init__(self, seed: int):
        self.seed = seed
        self.asked: Counter[str] = Counter()
        self.lock = threading.Lock()

    def generator(self, page: Page) -> torch.Generator:
        # Without the address, which has the port of the practice sites.
        shown = json.dumps([page.goal, page.elements])
        with self.lock:
            self.asked[shown] += 1
            count = self.asked[shown]
        digest = hashlib.sha256(f"{self.seed} {count} {shown}".encode()).digest()
        return torch.Generator().manual_seed(int.from_bytes(digest[:7], "big"))


def choose(policy: Policy, page: Page, temperature: float, generator: torch.Generator) -> tuple[str, float]:
    """Returns a reply and its log-probability."""
    if not page.elements:
        return reply_with("nothing", {"action": "wait", "time": 1}), 0.0
    with torch.no_grad():
        logits = policy(Batch([page]))[0]
        if temperature > 0:
            logits = torch.log_softmax(logits / temperature, dim=0)
            chosen = int(torch.multinomial(logits.exp(), 1, generator=generator))
        else:
            chosen = int(logits.argmax())
    number, text, _ = page.elements[chosen]
    return reply_with(text, {"action": "click", "element_id": number}), float(logits[chosen])


def reply_with(text: str, arguments: dict) -> str:
    return REPLY.format(text=text, call=json.dumps({"name": "web_interaction", "arguments": arguments}))


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    policy: Policy
    seeds: Seeds
    version: str
    name: str

    def do_GET(self) -> None:
        if self.path == "/health":
            self.reply(200, {"status": "ok"})
        elif self.path == "/v1/models":
            model = {"id": self.name, "object": "model", "owned_by": "webgym", "root": self.version}
            self.reply(200, {"object": "list", "data": [model]})
        else:
            self.reply(404, {"error": {"message": f"there is no {self.path}", "code": 404}})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        if self.path != "/v1/chat/completions":
            self.reply(404, {"error": {"message": f"there is no {self.path}", "code": 404}})
            return
        try:
            request = json.loads(body)
            page = parse_prompt(request["messages"])
        except (ValueError, KeyError, IndexError) as error:
            self.reply(400, {"error": {"message": f"the request cannot be used: {error}", "code": 400}})
            return
        self.reply(200, self.completion(request, page))

    def completion(self, request: dict, page: Page) -> dict:
        content, logprob = choose(self.policy, page, float(request.get("temperature", 1.0)), self.seeds.generator(page))
        choice = {"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": "stop"}
        if request.get("logprobs"):
            # The policy makes one choice, so its reply is one token.
            choice["logprobs"] = {"content": [{"token": content, "logprob": logprob, "bytes": None, "top_logprobs": []}]}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        created = int(time.time())
        return {"id": "chatcmpl-learn", "object": "chat.completion", "created": created, "model": self.name,
                "choices": [choice], "usage": usage}  # fmt: skip

    def reply(self, status: int, body: dict) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.send_header("x-policy-version", self.version)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *arguments: object) -> None:
        pass


def main() -> None:
    parser = argparse.ArgumentParser(description="Serves the policy of a checkpoint.")
    parser.add_argument("--model", type=Path, required=True, help="folder of a checkpoint")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000, help="0 for a free one; the first line printed has the URL")
    parser.add_argument("--served-model-name", default="learn")
    parser.add_argument("--seed", type=int, default=0, help="of the sampled actions")
    options = parser.parse_args()
    torch.set_num_threads(1)
    Handler.seeds = Seeds(options.seed)
    Handler.policy, Handler.version = load(options.model)
    Handler.name = options.served_model_name
    server = ThreadingHTTPServer((options.host, options.port), Handler)
    print(json.dumps({"event": "listening", "url": f"http://{options.host}:{server.server_port}"}), flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
