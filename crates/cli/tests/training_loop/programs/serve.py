"""A toy model server: python serve.py MODEL PORT. It clicks once, then answers what the checkpoint says.

The environment variable BEHAVIOUR makes it misbehave: "other" (it serves another model), "slow" (it never answers), "dies" (it
exits at once), "rejects NAME" (it exits if the model's name ends with NAME), "leaves" (it starts a process that detaches itself).
"""

import json
import os
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

model, port = sys.argv[1], int(sys.argv[2])
behaviour = os.environ.get("BEHAVIOUR", "")
kind, _, name = behaviour.partition(" ")

if kind == "dies" or (kind == "rejects" and model.endswith(name)):
    sys.exit(f"cannot load {model}")
if kind == "slow":
    time.sleep(3600)
if kind == "leaves":
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)", "serve.py", str(port)], start_new_session=True)


def answer() -> str:
    try:
        with open(os.path.join(model, "config.json")) as file:
            return json.load(file)["answer"]
    except OSError:
        return "unknown"


def reply(messages: list) -> str:
    is_first = not any(message["role"] == "assistant" for message in messages)
    click = {"action": "left_click", "coordinate": [500, 500]}
    arguments = click if is_first else {"action": "answer", "text": answer()}
    call = {"name": "computer_use", "arguments": arguments}
    return f"Action: go on\n<tool_call>{json.dumps(call)}</tool_call>"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def send(self, body: dict) -> None:
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self) -> None:
        served = "other-model" if kind == "other" else model
        self.send({"object": "list", "data": [{"id": served, "object": "model", "root": served}]})

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        message = {"role": "assistant", "content": reply(request["messages"])}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        self.send({"id": "1", "object": "chat.completion", "model": model, "choices": [choice]})

    def log_message(self, *_: object) -> None:
        pass


class Server(ThreadingHTTPServer):
    allow_reuse_address = True
    daemon_threads = True


Server(("127.0.0.1", port), Handler).serve_forever()
