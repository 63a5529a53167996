"""Starts `vllm serve` on the CPU with the tiny model, and asks it what it answers to requests that must fail."""

import json
from pathlib import Path

from harness import OUT, Process, check, free_port, phase, request

MODEL = "tiny"
OWN_KEY = "the server's own key"
ENVIRONMENT = {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "OMP_NUM_THREADS": "2",
    "VLLM_LOGGING_LEVEL": "WARNING",
}


class VllmServer:
    def __init__(self, name: str, *options: str, key: str | None = None):
        port = free_port()
        self.name, self.key, self.url = name, key, f"http://127.0.0.1:{port}"
        self.answers: dict[str, dict] = {}
        command = [
            OUT / "vllm" / "bin" / "vllm",
            "serve",
            OUT / "model",
            "--served-model-name",
            MODEL,
            "--host",
            "127.0.0.1",
        ]
        fixed = ["--port", port, "--dtype", "float32", "--enforce-eager", "--max-num-seqs", "8"]
        self.process = Process(f"vllm-{name}", [*command, *fixed, *options], ENVIRONMENT)

    def __enter__(self) -> "VllmServer":
        phase(f"vllm: starting the server of configuration `{self.name}` (about a minute)")
        self.process.wait_until(lambda: request(f"{self.url}/health")[0] == 200, 400, "answer")
        self.record("models", *request(f"{self.url}/v1/models", key=self.key))
        return self

    def __exit__(self, *_) -> None:
        path = OUT / "vllm-answers.json"
        answers = json.loads(path.read_text()) if path.exists() else {}
        answers[self.name] = self.answers
        path.write_text(json.dumps(answers, indent=2) + "\n")
        self.process.stop()

    def record(self, name: str, status: int, body: str) -> tuple[int, str]:
        """Keeps an answer for target/trainers/vllm-answers.json."""
        self.answers[name] = {"status": status, "body": body}
        return status, body

    def expect(self, status: int, name: str, *images: Path, text: str = "hello", key: str | None = OWN_KEY, **settings):
        """Sends a chat request with images as file URLs, records the answer and checks its status."""
        parts = [{"type": "image_url", "image_url": {"url": f"file://{image}"}} for image in images]
        content = [{"type": "text", "text": text}, *parts]
        body = {"model": MODEL, "messages": [{"role": "user", "content": content}], "max_tokens": 8, **settings}
        used = self.key if key is OWN_KEY else key
        found, answer = self.record(name, *request(f"{self.url}/v1/chat/completions", body, used))
        check(found == status, f"{self.name}: vLLM answers {found} to `{name}`, {status} was expected: {answer}")
