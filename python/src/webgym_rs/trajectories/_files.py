"""Readers of `.pt` files and journals. Each opens trajectories one by one."""

from __future__ import annotations

import json
import math
import struct
import warnings
import zipfile
import zlib
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from ._model import Trajectory, trajectory_of_file
from ._unpickle import TrajectoryFileError, load_bytes, load_pickle
from .components import Action, Observation, Response, Reward, Task

CHECKSUM_BYTES = 9
INDEX = "webgym_index.jsonl"
INDEX_FORMAT = 1


class TrajectoryFile(Protocol):
    """A file with trajectories."""

    @property
    def metadata(self) -> Mapping[str, Any]: ...

    def __len__(self) -> int: ...

    def read(self, position: int) -> Trajectory: ...


class PtFile:
    """A `.pt` file. Of our own files a single trajectory is read; files saved by PyTorch are read once, as a whole."""

    def __init__(self, path: Path, split: str, iteration: int):
        self.path, self._split, self._iteration = path, split, iteration

    @cached_property
    def _pickle_name(self) -> str | None:
        """The name of the pickle in the archive; None if the file is a bare pickle, or in PyTorch's older format."""
        if not zipfile.is_zipfile(self.path):
            return None
        with zipfile.ZipFile(self.path) as archive:
            names = [name for name in archive.namelist() if name.rpartition("/")[2] == "data.pkl"]
        if len(names) != 1:
            raise TrajectoryFileError(f"{self.path} is not a file of torch.save: it has no data.pkl")
        return names[0]

    @cached_property
    def _index(self) -> list[dict[str, Any]] | None:
        if self._pickle_name is None:
            return None
        with zipfile.ZipFile(self.path) as archive:
            name = self._pickle_name.removesuffix("data.pkl") + INDEX
            if name not in archive.namelist():
                return None
            lines = [json.loads(line) for line in archive.read(name).splitlines()]
        header = lines[0]
        is_known = header["format"] == INDEX_FORMAT and header["trajectories"] == len(lines) - 1
        return lines if is_known else None

    @cached_property
    def _whole(self) -> dict[str, Any]:
        if self._pickle_name is None:
            with self.path.open("rb") as stream:
                value = load_pickle(stream, str(self.path))
        else:
            with zipfile.ZipFile(self.path) as archive, archive.open(self._pickle_name) as stream:
                value = load_pickle(stream, str(self.path))
        if not isinstance(value, dict) or "trajectories" not in value:
            raise TrajectoryFileError(f"{self.path} has no trajectories")
        return value  # pyright: ignore[reportUnknownVariableType]

    @property
    def metadata(self) -> Mapping[str, Any]:
        return self._index[0]["metadata"] if self._index else self._whole.get("metadata", {})

    def __len__(self) -> int:
        return len(self._index) - 1 if self._index else len(self._whole["trajectories"])

    def read(self, position: int) -> Trajectory:
        steps = self._read_entry(position) if self._index else self._whole["trajectories"][position]
        return trajectory_of_file(steps, self._split, self._iteration, position)

    def _read_entry(self, position: int) -> Any:
        assert self._index is not None
        assert self._pickle_name is not None
        header, entry = self._index[0], self._index[position + 1]
        with zipfile.ZipFile(self.path) as archive, archive.open(self._pickle_name) as stream:
            info = archive.getinfo(self._pickle_name)
            # The start of the pickle defines the names that all trajectories share.
            if info.compress_type == zipfile.ZIP_DEFLATED and "compressed_offset" in entry:
                names = self._inflate(info, 0, header["names"])
                steps = self._inflate(info, entry["compressed_offset"], entry["length"])
            else:
                names = stream.read(header["names"])
                stream.seek(entry["offset"])
                steps = stream.read(entry["length"])
        return load_bytes(names + steps + b".", f"trajectory {position} of {self.path}")

    def _inflate(self, info: zipfile.ZipInfo, offset: int, length: int) -> bytes:
        """Decompresses from a position in the compressed data, which begins after a header with name and extra field."""
        with self.path.open("rb") as file:
            file.seek(info.header_offset + 26)
            name_length, extra_length = struct.unpack("<HH", file.read(4))
            file.seek(info.header_offset + 30 + name_length + extra_length + offset)
            decompressor = zlib.decompressobj(-zlib.MAX_WBITS)
            content = b""
            while len(content) < length:
                compressed = decompressor.unconsumed_tail or file.read(1 << 16)
                if not compressed:
                    raise TrajectoryFileError(f"{self.path} is truncated")
                try:
                    content += decompressor.decompress(compressed, length - len(content))
                except zlib.error as error:
                    raise TrajectoryFileError(f"{self.path} is damaged: {error}") from error
        return content


class JournalFile:
    """The journal of a run in progress, or interrupted. It has the trajectories that are finished."""

    def __init__(self, path: Path, split: str, iteration: int):
        self.path, self._split, self._iteration = path, split, iteration
        self.metadata: Mapping[str, Any] = {}
        self._positions = self._scan()

    def _scan(self) -> list[tuple[int, int]]:
        """Returns offset and length of the finished trajectories, by their index. Of several records the last counts."""
        finished: dict[int, tuple[int, int]] = {}
        offset = 0
        with self.path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                record = self._decode(line, number)
                if "run" in record:
                    self.metadata = record["run"]["metadata"]
                if "finished" in record:
                    task = record["finished"]["trajectory"]["task"]
                    finished[task.get("trajectory_index", 0)] = (offset, len(line))
                offset += len(line)
        return [finished[index] for index in sorted(finished)]

    def _decode(self, line: bytes, number: int) -> dict[str, Any]:
        body = line[CHECKSUM_BYTES:].removesuffix(b"\n")
        expected = f"{zlib.crc32(body):08x} ".encode()
        if line.endswith(b"\n") and line[:CHECKSUM_BYTES] == expected:
            return json.loads(body)
        if line.endswith(b"\n"):
            warnings.warn(f"line {number} of {self.path} is damaged and left out", stacklevel=2)
        return {}

    def __len__(self) -> int:
        return len(self._positions)

    def read(self, position: int) -> Trajectory:
        offset, length = self._positions[position]
        with self.path.open("rb") as stream:
            stream.seek(offset)
            record = self._decode(stream.read(length), position)
        if "finished" not in record:
            raise TrajectoryFileError(f"{self.path} was changed while it was read; load it again")
        recorded = record["finished"]["trajectory"]
        _restore_prompts(recorded["steps"], record["finished"].get("prompts"))
        steps = steps_of_journal(recorded)
        return trajectory_of_file(steps, self._split, self._iteration, position)


def _restore_prompts(steps: list[dict[str, Any]], prompts: Mapping[str, Any] | None) -> None:
    """Joins the parts of the prompts, of which a journal has each once. Journals of the first format have whole prompts."""
    if prompts is None:
        return
    for step, numbers in zip(steps, prompts["steps"], strict=True):
        step["response"]["raw_prompt"] = "".join(prompts["parts"][number] for number in numbers)


def steps_of_journal(recorded: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns the steps as a `.pt` file has them."""
    fields = dict(recorded["task"])
    task_extra = fields.pop("extra", None)
    task = Task(**fields)
    steps = [_step_of_journal(step, task) for step in recorded["steps"]]
    metadata = dict(recorded["metadata"])
    extras = [_extras_of_journal(step.get("extras") or {}) for step in recorded["steps"]]
    if task_extra:
        metadata["task_extra"] = task_extra
    if any(extras):
        metadata["step_extras"] = extras
    if steps:
        steps[0]["trajectory_metadata"] = metadata
    return steps


def _step_of_journal(step: Mapping[str, Any], task: Task) -> dict[str, Any]:
    seen, action, response = step["observation"], step["action"], step["response"]
    page = {"title": seen["title"], "url": seen["url"]}
    fields: dict[str, Any] = {"observation": Observation(task, seen["image_path"], seen["ac_tree"], page)}
    fields["action"] = action and Action({"key": action["key"], "arguments": action["arguments"]}, action["action_string"])
    fields["response"] = Response(**response) if any(response.values()) else None
    fields["reward"] = Reward(**step["reward"])
    fields["same_as_next_screenshot"] = bool(step.get("same_as_next_screenshot"))
    return fields


def _extras_of_journal(extras: Mapping[str, Any]) -> dict[str, Any]:
    """JSON has no NaN: such log probabilities are null."""
    if "logprobs" not in extras:
        return dict(extras)
    return {**extras, "logprobs": [math.nan if value is None else value for value in extras["logprobs"]]}
