"""Farms on a real Ray cluster: two Ray nodes on this machine."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import ray
from ray.cluster_utils import Cluster

import webgym_rs as wg
from webgym_rs.ray import FarmAddress, start_farm

DRIVER = """
import os, signal, sys, ray, webgym_rs.ray
ray.init(address=sys.argv[1], log_to_driver=False)
cluster_farm = webgym_rs.ray.start_farm(instances_per_node=1)
session = cluster_farm.connect().lease(wait=60)
print(*cluster_farm.pids(), flush=True)
sys.stdin.readline()
"""
ENDS = {
    "end": "",
    "exception": "raise RuntimeError('the job failed')",
    "os._exit": "os._exit(3)",
    "kill": "os.kill(os.getpid(), signal.SIGKILL)",
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False})
    cluster.add_node(num_cpus=2)
    yield cluster
    cluster.shutdown()


@pytest.fixture
def job(cluster: Cluster) -> Iterator[Cluster]:
    ray.init(address=cluster.address, log_to_driver=False)
    yield cluster
    ray.shutdown()


def wait_until(condition: Callable[[], bool], what: str, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.1)


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def servers_of_this_machine() -> set[int]:
    """Returns the processes that run the webgym program."""
    program = os.environ["WEBGYM_BINARY"].encode()
    found = set()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found |= {int(path.parent.name)} if path.read_bytes().split(b"\0")[0] == program else set()
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


def with_descendants(roots: list[int]) -> list[int]:
    """Returns the processes and everything that they have started: helpers and browsers."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
        except (FileNotFoundError, ProcessLookupError):
            continue

    def descends(pid: int) -> bool:
        return pid in roots or (pid in parents and descends(parents[pid]))

    return [pid for pid in parents if descends(pid)]


def wait_until_ended(pids: list[int]) -> None:
    wait_until(lambda: not any(map(is_running, pids)), "the processes of the farm end")


@ray.remote
def lease_in_task(address: FarmAddress) -> str:
    with address.connect() as farm, farm.lease(wait=60) as session:
        return session.node


def test_farm_has_the_sessions_of_all_ray_nodes(job: Cluster) -> None:
    with start_farm(instances_per_node=2) as cluster_farm, cluster_farm.connect() as farm:
        sessions = [farm.lease(wait=60) for _ in range(4)]
        assert len({session.node for session in sessions}) == 2
        assert all(session.cdp_url.startswith(cluster_farm.url) for session in sessions)
        with pytest.raises(wg.NoCapacity):
            farm.lease(wait=0)
        nodes = {session.node for session in sessions}
        sessions.pop().release()
        assert ray.get(lease_in_task.remote(cluster_farm.address)) in nodes
        assert cluster_farm.address.api_key not in repr(cluster_farm.address)
        pids = with_descendants(cluster_farm.pids())
    assert len(pids) > 6
    wait_until_ended(pids)


def test_number_of_nodes_can_be_chosen(job: Cluster) -> None:
    with start_farm(nodes=1, instances_per_node=1) as cluster_farm, cluster_farm.connect() as farm:
        assert len(farm.info()["nodes"]) == 1
    with pytest.raises(ValueError, match="nodes is 3; the Ray cluster has 2 nodes"):
        start_farm(nodes=3)


def test_server_that_cannot_start_is_reported(job: Cluster) -> None:
    before = servers_of_this_machine()
    with pytest.raises(wg.FarmStartError, match="no-such-flag"):
        start_farm(instances_per_node=1, arguments=["--no-such-flag"])
    with pytest.raises(wg.FarmStartError, match="/nowhere/chromium is not an executable program"):
        start_farm(instances_per_node=1, arguments=["--chromium=/nowhere/chromium"])
    wait_until(lambda: servers_of_this_machine() <= before, "all servers end")


@pytest.mark.parametrize("end", sorted(ENDS))
def test_farm_ends_with_the_job(cluster: Cluster, end: str) -> None:
    command = [sys.executable, "-c", DRIVER + ENDS[end], cluster.address]
    driver = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    with driver:
        servers = [int(text) for text in driver.stdout.readline().split()]
        assert len(servers) == 3
        pids = with_descendants(servers)
        driver.stdin.write("\n")
        driver.stdin.flush()
        driver.wait(60)
    wait_until_ended(pids)


def test_killed_actor_takes_its_server_along(job: Cluster) -> None:
    with start_farm(instances_per_node=1) as cluster_farm:
        master, *nodes = cluster_farm.pids()
        lost = with_descendants(nodes[:1])
        actor = int(Path(f"/proc/{nodes[0]}/stat").read_text().rpartition(")")[2].split()[1])
        os.kill(actor, signal.SIGKILL)
        wait_until_ended(lost)
        with cluster_farm.connect() as farm, farm.lease(wait=60) as session:
            session.probe()
        assert is_running(master)


def test_farm_works_after_the_loss_of_a_ray_node(cluster: Cluster) -> None:
    added = cluster.add_node(num_cpus=1)
    ray.init(address=cluster.address, log_to_driver=False)
    try:
        with start_farm(nodes=3, instances_per_node=1) as cluster_farm, cluster_farm.connect() as farm:
            pids = cluster_farm.pids()
            everything = {pid: with_descendants([pid]) for pid in pids}
            cluster.remove_node(added, allow_graceful=False)
            wait_until(lambda: len([pid for pid in pids if not is_running(pid)]) == 1, "the server of the lost node ends")
            lost = next(pid for pid in pids if not is_running(pid))
            wait_until_ended(everything[lost])
            for session in [farm.lease(wait=60) for _ in range(2)]:
                session.probe()
    finally:
        ray.shutdown()
