"""`wg.load` reads what a run writes, in every format, exactly as torch does."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from conftest import ITERATION, Run
from torch_dump import plain

import webgym_rs as wg
from webgym_rs import trajectories
from webgym_rs._binary import find_binary
from webgym_rs.trajectories import TrajectoryFileError

SYSTEM_PYTHON = "/usr/bin/python3"


def as_in_the_file(iteration: trajectories.Iteration) -> list[list[dict[str, Any]]]:
    """Returns the trajectories in the shape of a `.pt` file."""
    names = ("observation", "action", "response", "reward", "same_as_next_screenshot")
    shaped = [[{name: getattr(step, name) for name in names} for step in trajectory.steps] for trajectory in iteration]
    for steps, trajectory in zip(shaped, iteration, strict=True):
        steps[0]["trajectory_metadata"] = trajectory.metadata
    return shaped


def torch_dump(*arguments: Path) -> Any:
    command = [SYSTEM_PYTHON, Path(__file__).with_name("torch_dump.py"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "No module named 'torch'" in done.stderr:
        pytest.skip(f"{SYSTEM_PYTHON} has no torch; scripts/setup --tests installs it")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_load_equals_torch_load(run: Run, tmp_path: Path) -> None:
    saved, saved_old = tmp_path / ITERATION, tmp_path / "old.pt"
    expected = torch_dump(run.pt, saved, saved_old)
    for path in (run.pt, saved, saved_old):
        (iteration,) = wg.load(path)
        loaded = {"trajectories": as_in_the_file(iteration), "metadata": iteration.metadata}
        assert json.loads(json.dumps(plain(loaded))) == expected, path
        assert (iteration.split, iteration.number, len(iteration)) == ("train", 0, 4)


def test_journal_equals_the_finished_file(run: Run) -> None:
    (finished,), (journal,) = wg.load(run.save_path), wg.load(run.interrupted)
    assert finished.is_finished
    assert not journal.is_finished
    assert as_in_the_file(journal) == as_in_the_file(finished)
    assert journal.metadata == finished.metadata


def test_damaged_line_of_a_journal_is_left_out(run: Run, tmp_path: Path) -> None:
    lines = run.journal.read_bytes().splitlines(keepends=True)
    finished = [number for number, line in enumerate(lines) if b'{"finished"' in line[:20]]
    lines[finished[0]] = lines[finished[0]].replace(b"task_name", b"task_nome")
    damaged = tmp_path / run.journal.name
    damaged.write_bytes(b"".join(lines[:-1]) + lines[-1][:50])
    with pytest.warns(UserWarning, match=f"line {finished[0] + 1} of .* is damaged"):
        (iteration,) = wg.load(damaged)
    assert len(iteration) == 4 - 1 - (finished[-1] == len(lines) - 1)


def export(run: Run, folder: Path) -> Path:
    command = [find_binary(), "-q", "export", run.save_path, "--to", "parquet", "--out", folder]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return folder


def test_parquet_equals_the_finished_file(run: Run, tmp_path: Path) -> None:
    (finished,), (parquet,) = wg.load(run.save_path), wg.load(export(run, tmp_path / "data"))
    for ours, theirs in zip(as_in_the_file(parquet), as_in_the_file(finished), strict=True):
        for step in theirs:
            # The columns of the dataset have one type each.
            step["observation"].task.task_id = str(step["observation"].task.task_id)
            texts = step["reward"].evaluation
            step["reward"].evaluation = [texts] if texts and isinstance(texts, str) else list(texts)
        assert ours == theirs


def test_pandas_equals_the_exported_dataset(run: Run, tmp_path: Path) -> None:
    import pandas

    exported = pandas.read_parquet(next(export(run, tmp_path / "data").rglob("*.parquet")))
    frame = wg.load(run.save_path).to_pandas()
    left_out = {"screenshot_sha256", "screenshot", "schema_version"}
    assert set(frame.columns) == set(exported.columns) - left_out

    def normal(value: Any) -> Any:
        if isinstance(value, str):
            return json.loads(value) if value[:1] in ("{", "[") else value
        listed: Any = value.tolist() if hasattr(value, "tolist") else value
        return listed if isinstance(listed, list) or not pandas.isna(listed) else None

    for name in frame.columns:
        assert [normal(value) for value in frame[name]] == [normal(value) for value in exported[name]], name


def test_hf_dataset_has_a_row_per_step(run: Run) -> None:
    dataset = wg.load(run.save_path).to_hf_dataset()
    steps = sum(len(trajectory.steps) for trajectory in wg.load(run.save_path).trajectories())
    assert len(dataset) == steps
    assert dataset[0]["task_name"]


def test_one_trajectory_is_read_without_the_others(run: Run, tmp_path: Path) -> None:
    with zipfile.ZipFile(run.pt) as archive:
        index = [json.loads(line) for line in archive.read("archive/webgym_index.jsonl").splitlines()]
    damaged = tmp_path / ITERATION
    data = bytearray(run.pt.read_bytes())
    # The compressed data follows the header of the first record: its fields, its name and space for large sizes.
    start = 30 + len("archive/data.pkl") + 20
    first, second = (start + entry["compressed_offset"] for entry in index[1:3])
    data[first:second] = b"\xff" * (second - first)
    damaged.write_bytes(data)
    (iteration,), (whole,) = wg.load(damaged), wg.load(run.pt)
    assert iteration[2] == whole[2]
    assert iteration[-1].task == whole[3].task
    with pytest.raises((TrajectoryFileError, zipfile.BadZipFile)):
        iteration[0]


class Hostile:
    def __reduce__(self) -> tuple[Any, ...]:
        return vars(os)["system"], ("touch /tmp/webgym-hostile",)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_code_in_a_file_is_not_run(tmp_path: Path, protocol: int) -> None:
    path = tmp_path / "file.pt"
    path.write_bytes(pickle.dumps({"trajectories": [[Hostile()]]}, protocol))
    with pytest.raises(TrajectoryFileError, match=r"(posix|nt)\.system is not allowed"):
        wg.load(path)


def test_shim_lets_pickle_find_the_classes(run: Run) -> None:
    program = """
import sys, zipfile, pickle, webgym_rs.trajectories as t
t.install_shim()
from webgym.data.components import Task
assert Task is t.Task
with zipfile.ZipFile(sys.argv[1]) as archive:
    loaded = pickle.loads(archive.read("archive/data.pkl"))
print(loaded["trajectories"][0][0]["observation"].task.task_name)
"""
    done = subprocess.run([sys.executable, "-c", program, run.pt], capture_output=True, text=True, check=True)
    task = wg.load(run.pt)[0][0].task
    assert task is not None
    assert done.stdout.strip() == task.task_name


def test_what_is_no_save_path_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        wg.load(tmp_path / "nowhere")
    with pytest.raises(TrajectoryFileError, match="has no trajectories"):
        wg.load(tmp_path)
    (tmp_path / "x.pt").write_bytes(b"not a pickle")
    with pytest.raises(TrajectoryFileError, match=r"x\.pt"):
        wg.load(tmp_path / "x.pt")
