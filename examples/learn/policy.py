"""A small policy that learns which of the elements on a page the task speaks of.

It sees what a language model would see: the task and the accessibility text of the prompt. An element's score depends on
the words that it shares with the task. Nothing tells the policy that such words matter: all weights of the score begin at
zero, so that it begins with choosing an element at random. `policy_server.py` and `train.py` share this module.
"""

import json
import re
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path

import torch

BUCKETS = 2048
TAGS = 64
WORD = re.compile(r"[a-z0-9]+")
ELEMENT = re.compile(r"^id: (\d+), text: (.*), tag: (.*)$", re.MULTILINE)
FEATURES = 4


@dataclass(frozen=True)
class Page:
    """What a prompt says: the task, the address of the page, and its numbered elements as (number, text, tag)."""

    goal: str
    url: str
    elements: tuple[tuple[str, str, str], ...]


def words(text: str) -> list[str]:
    return WORD.findall(text.lower())


def bucket(text: str, count: int) -> int:
    """Returns the same number in every process, unlike `hash`."""
    return zlib.crc32(text.encode()) % count


def text_of(message: dict) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "".join(part.get("text") or "" for part in content)


def parse_prompt(messages: list[dict]) -> Page:
    """Reads the prompt of a step, in the format of `webgym prompts export`."""
    users = [text_of(message) for message in messages if message["role"] == "user"]
    goal = re.match(r"\s*Task: (.*?)\nStart website: ", users[0], re.DOTALL)
    address = re.search(r'^Page: ".*" at (\S+)$', users[-1], re.MULTILINE)
    if goal is None or address is None:
        raise ValueError("the prompt has no task or no page; is context_config.interaction_mode=set_of_marks?")
    _, _, listed = users[-1].partition("\nNumbered elements:\n```\n")
    return Page(goal.group(1), address.group(1), tuple(ELEMENT.findall(listed.partition("\n```")[0])))


class Policy(torch.nn.Module):
    """Scores the elements of a page. The weight of each word is learned, too."""

    def __init__(self):
        super().__init__()
        self.word_weights = torch.nn.Parameter(torch.ones(BUCKETS))
        self.score = torch.nn.Parameter(torch.zeros(FEATURES))
        self.tag_bias = torch.nn.Parameter(torch.zeros(TAGS))

    def forward(self, page: Page) -> torch.Tensor:
        """Returns the log-probability of each element."""
        goal, place = set(words(page.goal)), set(words(page.url))
        rows = [self._features(words(text), goal, place) for _, text, _ in page.elements]
        tags = torch.tensor([bucket(tag, TAGS) for _, _, tag in page.elements])
        return torch.log_softmax(torch.stack(rows) @ self.score + self.tag_bias[tags], dim=0)

    def _features(self, shown: list[str], goal: set[str], place: set[str]) -> torch.Tensor:
        """Describes an element: weight of the shared words, their share, those that the address has, its length."""
        shared = sorted(set(shown) & goal)
        weights = self.word_weights[torch.tensor([bucket(word, BUCKETS) for word in shared], dtype=torch.long)]
        known = torch.tensor([float(word in place) for word in shared])
        length = torch.tensor(len(shown) / 10)
        return torch.stack([weights.sum(), weights.sum() / max(len(shown), 1), (weights * known).sum(), length])


def save(policy: Policy, folder: Path, version: str) -> None:
    """Writes a checkpoint: `config.json` and `model.safetensors`."""
    folder.mkdir(parents=True, exist_ok=True)
    header, body = {}, b""
    for name, tensor in policy.state_dict().items():
        values = tensor.contiguous().numpy().tobytes()
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [len(body), len(body) + len(values)]}
        body += values
    text = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + body)
    config = {"model_type": "webgym-word-matching", "buckets": BUCKETS, "features": FEATURES, "version": version}
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")


def load(folder: Path) -> tuple[Policy, str]:
    """Reads a checkpoint. Returns the policy and its version."""
    config = json.loads((folder / "config.json").read_text())
    if (config["buckets"], config["features"]) != (BUCKETS, FEATURES):
        raise ValueError(f"{folder} is a checkpoint of another policy: {config}")
    data = (folder / "model.safetensors").read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    header, body = json.loads(data[8 : 8 + length]), bytearray(data[8 + length :])
    state = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        state[name] = torch.frombuffer(body[begin:end], dtype=torch.float32).reshape(entry["shape"]).clone()
    policy = Policy()
    policy.load_state_dict(state)
    return policy, config["version"]
