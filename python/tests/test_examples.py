"""Every example runs, and is short."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Practice, Run

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples"


def start(name: str, folder: Path, *arguments: object) -> str:
    command = [sys.executable, EXAMPLES / name, *map(str, arguments)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_examples_are_short_and_complete() -> None:
    names = {path.name: len(path.read_text().splitlines()) for path in EXAMPLES.glob("*.py")}
    assert len(names) == 7
    assert max(names.values()) <= 40, names


def test_client(site: str, tmp_path: Path) -> None:
    output = start("client.py", tmp_path, f"{site}/")
    assert "text: Name" in output
    assert (tmp_path / "page.png").read_bytes().startswith(b"\x89PNG")


def test_async_client(site: str, tmp_path: Path) -> None:
    output = start("async_client.py", tmp_path, f"{site}/", f"{site}/other", "http://127.0.0.1:1/", f"{site}/other")
    assert f"{site}/: Form, 5 interactive elements" in output
    assert output.count(": Other") == 2
    assert "ERR_" in output


def test_gymnasium_env(practice: Practice, tmp_path: Path) -> None:
    output = start("gymnasium_env.py", tmp_path, practice.tasks, 2)
    assert re.search(r"total reward \d\.0", output)


def test_vector_env(practice: Practice, tmp_path: Path) -> None:
    assert "4 episodes ended" in start("vector_env.py", tmp_path, practice.tasks, 6)


def test_browsergym_env(tmp_path: Path) -> None:
    pytest.importorskip("browsergym.miniwob")
    assert "2 of 2 episodes solved" in start("browsergym_env.py", tmp_path, 2)


def test_trajectories(run: Run, tmp_path: Path) -> None:
    output = start("trajectories.py", tmp_path, run.save_path)
    assert "train 0: 4 trajectories" in output
    assert (tmp_path / "successful.csv").exists()


@pytest.mark.parametrize("page", ["python/README.md", "README.md", "docs/python.md"])
def test_documented_client_program_works(page: str, site: str, tmp_path: Path) -> None:
    """The first program of each page, with pages of this machine instead of the web."""
    text = (ROOT.parent / page).read_text()
    block = re.search(r"^( *)import webgym_rs as wg\n(.*?)(?:^```|\n\n(?! )|\Z)", text, re.DOTALL | re.MULTILINE)
    assert block, page
    indent = block[1]
    program = "\n".join(line.removeprefix(indent) for line in block[0].removesuffix("```").splitlines())
    program = program.replace("https://example.com", f"{site}/").replace(
        "wg.serve(8)", 'wg.serve(2, arguments=["--allow-private-network"])'
    )
    environment = {**os.environ}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{program}\n{done.stderr}"
