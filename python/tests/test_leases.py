"""Leases are kept while they are used and come back however their holder ends."""

from __future__ import annotations

import gc
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import FARM_ARGUMENTS, leases, wait_until

import webgym_rs as wg
from webgym_rs import errors
from webgym_rs._binary import find_binary
from webgym_rs._calls import Lease
from webgym_rs._keeper import LeaseKeeper

HOLD = """
import os, signal, sys, webgym_rs as wg
farm = wg.Farm(sys.argv[1], api_key=os.environ["KEY"])
sessions = [farm.lease(minutes=30) for _ in range(2)]
print("leased", flush=True)
"""
SERVE = """
import os, signal, sys, webgym_rs as wg
farm = wg.serve(1, arguments=["--allow-private-network"])
session = farm.lease()
print(farm._process.pid, flush=True)
"""
ENDS = {
    "end": "",
    "exit": "sys.exit(3)",
    "exception": "raise RuntimeError('the program failed')",
    "interrupt": "signal.raise_signal(signal.SIGINT)",
    "os._exit": "os._exit(4)",
    "kill": "os.kill(os.getpid(), signal.SIGKILL)",
    "terminate": "os.kill(os.getpid(), signal.SIGTERM)",
}


def run(program: str, *arguments: str, key: str = "") -> str:
    command = [sys.executable, "-c", program, *arguments]
    environment = {**os.environ, "KEY": key}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout, done.stderr
    return done.stdout


def key_of(farm: wg.Farm) -> str:
    assert farm._process is not None
    return farm._process.api_key


@pytest.mark.parametrize("end", ["end", "exit", "exception", "interrupt"])
def test_program_that_ends_releases_its_leases(farm: wg.Farm, end: str) -> None:
    assert run(HOLD + ENDS[end], farm.url, key=key_of(farm)) == "leased\n"
    assert leases(farm) == []


@pytest.mark.parametrize("end", ["os._exit", "kill", "terminate"])
def test_program_that_ends_without_its_finalisers_leaves_no_lease(farm: wg.Farm, end: str) -> None:
    assert run(HOLD + ENDS[end], farm.url, key=key_of(farm)) == "leased\n"
    wait_until(lambda: leases(farm) == [], f"the reaper releases the leases after {end}")


def test_reaper_ends_with_the_program(farm: wg.Farm) -> None:
    program = HOLD + "from webgym_rs import _reaper_process\nprint(_reaper_process._current.pid)\n"
    output = run(program, farm.url, key=key_of(farm))
    assert not is_running(int(output.split()[1]))


def test_worker_of_multiprocessing_leaves_no_lease(farm: wg.Farm) -> None:
    """Such a process ends without finalisers. It is forked from one that has leases, and a reaper, of its own."""
    program = f"""
import multiprocessing, os
def work():
    {HOLD.strip().replace(chr(10), chr(10) + "    ")}
work()
worker = multiprocessing.get_context("fork").Process(target=work)
worker.start()
worker.join()
"""
    assert run(program, farm.url, key=key_of(farm)) == "leased\nleased\n"
    wait_until(lambda: leases(farm) == [], "both reapers have released")


def test_program_ends_although_the_farm_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """The leases are not waited for one after the other."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setattr("webgym_rs._keeper.REQUEST_SECONDS", 0.5)
        keeper = LeaseKeeper(f"http://127.0.0.1:{silent.getsockname()[1]}", "key", has_reaper=False)
        for number in range(100):
            keeper.add(Lease(f"{number}", "node"), 1, keep_alive=True)
        started = time.monotonic()
        keeper.close()
        assert time.monotonic() - started < 25


def is_running(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False


def browser_processes(farm: int) -> list[int]:
    """Returns the processes of the farm's browsers: its descendants that run Chromium."""
    parents: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        fields = read(path).rpartition(")")[2].split()
        if fields:
            parents[int(path.parent.name)] = int(fields[1])

    def descends(pid: int) -> bool:
        return pid in parents and (parents[pid] == farm or descends(parents[pid]))

    return [pid for pid in parents if descends(pid) and "--no-first-run" in read(Path(f"/proc/{pid}/cmdline"))]


def read(path: Path) -> str:
    try:
        return path.read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


@pytest.mark.parametrize("end", sorted(ENDS))
def test_served_farm_ends_with_the_program(end: str) -> None:
    pid = int(run(SERVE + ENDS[end]))
    wait_until(lambda: not is_running(pid), f"the farm (process {pid}) ends after {end}")


def test_killed_program_leaves_no_browser() -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", SERVE + "import time; time.sleep(600)"], stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    farm = int(holder.stdout.readline())
    browsers = browser_processes(farm)
    assert browsers
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    holder.stdout.close()
    wait_until(lambda: not any(map(is_running, [farm, *browsers])), "farm and browsers end")


def test_forgotten_session_is_released(farm: wg.Farm) -> None:
    session = farm.lease()
    assert leases(farm) == [session.id]
    del session
    gc.collect()
    wait_until(lambda: leases(farm) == [], "the finaliser releases the lease")


def test_exception_in_with_releases(farm: wg.Farm) -> None:
    for failure in (ValueError, KeyboardInterrupt):
        with pytest.raises(failure), farm.lease():
            raise failure
        wait_until(lambda: leases(farm) == [], f"{failure.__name__} releases the lease")


def test_released_session_is_refused(farm: wg.Farm) -> None:
    session = farm.lease()
    session.release()
    session.release()
    with pytest.raises(errors.InvalidInstance) as failure:
        session.page()
    assert isinstance(failure.value, wg.InfrastructureError)


# A minute of a lease is one second in the farm of these tests, and 60 seconds for the client.
def test_unused_lease_expires_without_keep_alive(farm: wg.Farm) -> None:
    session = farm.lease(minutes=1, keep_alive=False)
    wait_until(lambda: leases(farm) == [], "the lease expires")
    with pytest.raises(errors.InvalidInstance):
        session.page()


def test_idle_lease_is_renewed(farm: wg.Farm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webgym_rs._keeper.IDLE_SHARE", 1 / 720)
    with farm.lease(minutes=3) as session:
        unused = farm.lease(minutes=4, keep_alive=False)
        wait_until(lambda: unused.id not in leases(farm), "the lease without renewal expires")
        assert leases(farm) == [session.id]
        session.page()


def test_full_farm_is_no_capacity() -> None:
    with wg.serve(1, arguments=FARM_ARGUMENTS) as farm, farm.lease():
        with pytest.raises(wg.NoCapacity) as failure:
            farm.lease(wait=0)
        assert failure.value.status == 503


def test_lost_browser_is_instance_lost() -> None:
    with wg.serve(1, arguments=[*FARM_ARGUMENTS, "--disable-recovery"]) as farm, farm.lease() as session:
        assert farm._process is not None
        browsers = browser_processes(farm._process.pid)
        assert browsers
        for pid in browsers:
            os.kill(pid, signal.SIGKILL)
        with pytest.raises((errors.InstanceLost, errors.InvalidInstance)):
            session.step(wg.page_down(), include=["metadata"])


def test_unreachable_farm_is_named() -> None:
    with pytest.raises(wg.FarmUnreachable, match=r"127\.0\.0\.1:1/info"):
        wg.Farm("http://127.0.0.1:1").info()


def test_wrong_key(farm: wg.Farm) -> None:
    with pytest.raises(errors.WrongKey):
        wg.Farm(farm.url, api_key="wrong").info()


def test_farm_that_cannot_start_shows_its_log() -> None:
    with pytest.raises(wg.FarmStartError, match="no-such-flag"):
        wg.serve(1, arguments=["--no-such-flag"])


def test_missing_program_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEBGYM_BINARY", "/nowhere/webgym")
    with pytest.raises(wg.FarmStartError, match="/nowhere/webgym"):
        wg.serve(1)


@pytest.mark.parametrize(
    ("pid", "message"), [("1", "is not the parent"), ("0", "it must be the id"), ("999999999", "cannot watch")]
)
def test_wrong_parent_is_refused(pid: str, message: str) -> None:
    command = [find_binary(), "serve", "1", "--master-port=0", "--node-port=0", f"--exit-with-parent={pid}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert message in done.stderr
    assert f"--exit-with-parent is {pid}" in done.stderr or f"process {pid}" in done.stderr


def test_module_runs_the_program() -> None:
    done = subprocess.run([sys.executable, "-m", "webgym_rs", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("webgym ")
