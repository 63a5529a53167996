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
FEATURES = 3


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
    """Scores the elements of pages. The weight of each word is learned, too."""

    def __init__(self):
        super().__init__()
        self.word_weights = torch.nn.Parameter(torch.ones(BUCKETS))
        self.score = torch.nn.Parameter(torch.zeros(FEATURES))
        self.tag_bias = torch.nn.Parameter(torch.zeros(TAGS))

    def forward(self, batch: "Batch") -> torch.Tensor:
        """Returns the log-probability of each element; one row for each page."""
        weights = self.word_weights[batch.words] * batch.is_word
        shared = weights.sum(dim=-1)
        features = torch.stack([shared, shared / batch.lengths, (weights * batch.is_known).sum(dim=-1)], dim=-1)
        scores = features @ self.score + self.tag_bias[batch.tags]
        return torch.log_softmax(scores.masked_fill(~batch.is_element, -1e9), dim=-1)


class Batch:
    """The numbers that describe some pages. Elements and words are padded to the longest."""

    def __init__(self, pages: list[Page]):
        rows = [self._describe(page) for page in pages]
        size = (len(pages), max(len(row) for row in rows), max(len(one[0]) for row in rows for one in row) or 1)
        self.words = torch.zeros(size, dtype=torch.long)
        self.is_word, self.is_known = torch.zeros(size), torch.zeros(size)
        self.lengths, self.tags = torch.ones(size[:2]), torch.zeros(size[:2], dtype=torch.long)
        self.is_element = torch.zeros(size[:2], dtype=torch.bool)
        for i, row in enumerate(rows):
            for j, (words_of, known, length, tag) in enumerate(row):
                count = len(words_of)
                self.words[i, j, :count] = torch.tensor(words_of, dtype=torch.long)
                self.is_word[i, j, :count] = 1
                self.is_known[i, j, :count] = torch.tensor(known)
                self.lengths[i, j], self.tags[i, j], self.is_element[i, j] = length, tag, True

    @staticmethod
    def _describe(page: Page) -> list[tuple[list[int], list[float], int, int]]:
        """Returns for each element the words that it shares with the task, which of them the address has, and its length."""
        goal, place = set(words(page.goal)), set(words(page.url))
        described = []
        for _, text, tag in page.elements:
            shown = words(text)
            shared = sorted(set(shown) & goal)
            known = [float(word in place) for word in shared]
            described.append(([bucket(word, BUCKETS) for word in shared], known, max(len(shown), 1), bucket(tag, TAGS)))
        return described


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
