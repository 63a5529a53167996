"""Runs the test programs of the workspace side by side: most of them wait for browsers, timeouts and killed processes.

usage: test_programs.py [--jobs N] [COMMAND ...]

Runs a few programs at a time, the slow ones first, and COMMAND like one of them. Prints a line for each that takes long, and the
whole output of those that failed. Exits with 1 if any failed.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CARGO = os.environ.get("CARGO", "cargo")
# These take minutes. Started last, they would run alone at the end.
SLOW = [
    "browser::suite_shell",
    "cli::hostile",
    "cli::faults",
    "scripts/test-python",
    "browser::suite_chromium",
    "cli::machines",
    "cli::training_loop",
]


@dataclass(frozen=True)
class Program:
    name: str
    command: list[str]
    folder: Path


@dataclass(frozen=True)
class Result:
    program: Program
    code: int
    seconds: float
    output: str

    def summary(self) -> str:
        state = "ok" if self.code == 0 else f"FAILED with exit code {self.code}"
        return f"{self.program.name}: {state}, {self.passed()} tests passed, {self.seconds:.0f} s"

    def passed(self) -> int:
        return sum(int(count) for count in re.findall(r"(\d+) passed", self.output))


def test_programs() -> list[Program]:
    """Builds the test programs and returns them, each with the folder that cargo would run it in."""
    command = [CARGO, "test", "--quiet", "--workspace", "--no-run", "--message-format=json-render-diagnostics"]
    built = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if built.returncode != 0:
        sys.exit("test_programs: the tests do not compile; see above")
    found = []
    for line in built.stdout.splitlines():
        message = json.loads(line)
        if message.get("executable") and message.get("profile", {}).get("test"):
            folder = Path(message["manifest_path"]).parent
            name = f"{folder.name}::{message['target']['name']}"
            found.append(Program(name, [message["executable"], "--quiet"], folder))
    if not found:
        sys.exit("test_programs: cargo built no test program")
    return found


def run(program: Program) -> Result:
    started = time.monotonic()
    environment = {**os.environ, "CARGO": CARGO, "CARGO_MANIFEST_DIR": str(program.folder)}
    # A file and not a pipe: a process that a test left behind must not keep this waiting.
    with tempfile.TemporaryFile() as output:
        ended = subprocess.run(
            program.command,
            cwd=program.folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment,
            check=False,
        )
        output.seek(0)
        text = output.read().decode(errors="replace")
    return Result(program, ended.returncode, time.monotonic() - started, text)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=(os.cpu_count() or 1) + 1)
    parser.add_argument("command", nargs="*")
    arguments = parser.parse_args()
    programs = test_programs()
    if arguments.command:
        programs.append(Program(arguments.command[0], arguments.command, ROOT))
    # The order of the others stays: sorting is stable.
    programs.sort(key=lambda program: SLOW.index(program.name) if program.name in SLOW else len(SLOW))
    results = []
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for future in concurrent.futures.as_completed([pool.submit(run, program) for program in programs]):
            result = future.result()
            results.append(result)
            if result.code != 0 or result.seconds >= 20:
                print(result.summary(), flush=True)
    failed = [result for result in results if result.code != 0]
    for result in failed:
        print(f"\n== output of {result.program.name}\n{result.output}", flush=True)
    passed = sum(result.passed() for result in results)
    print(f"{passed} tests passed in {len(results)} programs; {len(failed)} programs failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
