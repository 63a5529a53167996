"""Starts webgym and sends requests to its farm, for the scripts that measure."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator

DEFAULT_PROGRAM = "target/release/webgym"


def program_argument(description: str | None) -> str:
    """Returns the path of webgym: the only argument of a script with this description."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("webgym", nargs="?", default=DEFAULT_PROGRAM, help=f"the program (default: {DEFAULT_PROGRAM})")
    program = parser.parse_args().webgym
    if shutil.which(program) is None:
        parser.error(f"there is no program {program}; build it (cargo build --release), or name another one")
    return program


@contextlib.contextmanager
def running(program: str, *arguments: str, **variables: str) -> Iterator[str]:
    """Runs a server of webgym and yields its address: that of the master for `serve`. Ends it afterwards."""
    environment = {**os.environ, **variables}
    process = subprocess.Popen([program, "-q", *arguments], stdout=subprocess.PIPE, text=True, env=environment)
    try:
        yield wait_for_url(process)
    finally:
        process.terminate()
        process.wait()


def wait_for_url(process: subprocess.Popen[str]) -> str:
    assert process.stdout
    master = ""
    for line in process.stdout:
        event = json.loads(line)
        if event["event"] == "ready":
            return master
        if event["event"] == "listening" and event["tier"] in ("practice", "policy"):
            return event["url"]
        if event["event"] == "listening" and event["tier"] == "master":
            master = event["url"]
    raise SystemExit(f"{' '.join(map(str, process.args))} ended before it was ready")


@contextlib.contextmanager
def farm(program: str, instances: int, *arguments: str, **variables: str) -> Iterator[str]:
    """Runs a farm on free ports and yields the address of its master."""
    ports = ["--master-port", "0", "--node-port", "0"]
    with running(program, "serve", str(instances), *ports, *arguments, **variables) as master:
        yield master


def request(method: str, url: str, body: object = None) -> bytes:
    data = None if body is None else json.dumps(body).encode()
    headers = {"x-api-key": os.environ.get("WEBGYM_API_KEY", "default_key"), "content-type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(url, data, headers, method=method), timeout=120) as response:
        return response.read()
