"""A farm on the nodes of a Ray cluster, which ends with the Ray job.

    import ray, webgym_rs.ray

    ray.init()
    with webgym_rs.ray.start_farm(instances_per_node=16) as cluster_farm:
        farm = cluster_farm.connect()        # here, or in any task or actor: pass it `cluster_farm.address`

An actor on each Ray node runs `webgym node`, and one on the node of the driver runs `webgym master`. They are ordinary
actors of the job: when it ends, however it does, Ray ends them, and their programs and browsers end with them.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ._client_sync import Farm
from ._farm_process import FarmProcess
from .errors import FarmStartError

if TYPE_CHECKING:
    from typing_extensions import Self

try:
    # Not typed here: the checks of this package run without Ray.
    ray: Any = import_module("ray")
    scheduling: Any = import_module("ray.util.scheduling_strategies")
except ImportError as error:
    raise ImportError("Ray is not installed; run: pip install 'webgym-rs[ray]'") from error

STOP_SECONDS = 30
# The addresses of nodes change with every start, so a node has no data that is worth a wait for its leases.
NODE_ARGUMENTS = ("--port=0", "--no-mirror", "--drain-secs=0")


class _Server:
    """Runs one server of the farm in an actor."""

    def __init__(self) -> None:
        self._process: FarmProcess | None = None

    def start(self, command: Sequence[str], tier: str, api_key: str, ready_seconds: float) -> str:
        """Starts the server on the address of this Ray node, and returns its URL."""
        host: str = ray.util.get_node_ip_address()
        command = [*command, f"--host={host}"]
        self._process = FarmProcess(command, tier=tier, ready_seconds=ready_seconds, api_key=api_key)
        return self._process.wait_ready()

    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def stop(self) -> None:
        if self._process is not None:
            self._process.stop()


@dataclass(frozen=True)
class FarmAddress:
    """What a task or an actor needs to use the farm. Can be passed to remote functions."""

    url: str
    api_key: str = field(repr=False)

    def connect(self, *, timeout: float = 120.0) -> Farm:
        """Returns a client of the farm."""
        return Farm(self.url, api_key=self.api_key, timeout=timeout)


class RayFarm:
    """A farm of one master and several nodes, each in an actor. `stop` it, or use it with `with`."""

    def __init__(self, address: FarmAddress, servers: Sequence[Any]):
        self.address = address
        self._servers = list(servers)

    @property
    def url(self) -> str:
        """The URL of the master."""
        return self.address.url

    def connect(self, *, timeout: float = 120.0) -> Farm:
        """Returns a client of the farm."""
        return self.address.connect(timeout=timeout)

    def pids(self) -> list[int]:
        """Returns the process ids of the servers, the master first."""
        return ray.get([server.pid.remote() for server in self._servers])

    def stop(self) -> None:
        """Ends the farm with its browsers and leases."""
        _stop(self._servers)
        self._servers.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()


def start_farm(
    nodes: int | None = None,
    instances_per_node: int = 8,
    *,
    arguments: Sequence[str] = (),
    num_cpus: float = 0,
    ready_seconds: float = 120.0,
) -> RayFarm:
    """Starts a farm node on each Ray node, or on `nodes` of them, and a master. Waits until the browsers are ready.

    webgym-rs and Chromium must be installed on the Ray nodes. `arguments` are further options of `webgym node`, and
    `num_cpus` is what Ray reserves for each of them. Raises `FarmStartError` if a server does not start; then none is
    left.
    """
    places = _ray_nodes(nodes)
    api_key = secrets.token_urlsafe(24)
    servers: list[Any] = []
    try:
        command = ["node", str(instances_per_node), *NODE_ARGUMENTS, *arguments]
        servers += [_actor(place, num_cpus) for place in places]
        started = [server.start.remote(command, "node", api_key, ready_seconds) for server in servers]
        urls: list[str] = _results(started, ready_seconds)
        servers.insert(0, _actor(ray.get_runtime_context().get_node_id(), 0))
        command = ["master", "--port=0", "--no-mirror", *(f"--node={url}" for url in urls)]
        url = _results([servers[0].start.remote(command, "master", api_key, ready_seconds)], ready_seconds)[0]
    except BaseException:
        _stop(servers)
        raise
    return RayFarm(FarmAddress(url, api_key), servers)


def _ray_nodes(wanted: int | None) -> list[str]:
    """Returns the ids of the Ray nodes to use."""
    alive: list[str] = [node["NodeID"] for node in ray.nodes() if node["Alive"]]
    if wanted is None:
        return alive
    if not 1 <= wanted <= len(alive):
        raise ValueError(f"nodes is {wanted}; the Ray cluster has {len(alive)} nodes, so 1 to {len(alive)} are accepted")
    return alive[:wanted]


def _actor(ray_node: str, num_cpus: float) -> Any:
    strategy = scheduling.NodeAffinitySchedulingStrategy(node_id=ray_node, soft=False)
    return ray.remote(_Server).options(scheduling_strategy=strategy, num_cpus=num_cpus).remote()


def _results(calls: Sequence[Any], ready_seconds: float) -> list[str]:
    try:
        # A server reports itself that it is late; the rest is for Ray to start the actor.
        return ray.get(list(calls), timeout=ready_seconds + STOP_SECONDS)
    except ray.exceptions.RayTaskError as error:
        raise FarmStartError(f"a server of the farm did not start: {error.cause}") from error
    except ray.exceptions.RayError as error:
        raise FarmStartError(f"Ray did not start a server of the farm: {error}") from error


def _stop(servers: Sequence[Any]) -> None:
    """Stops the programs, and then the actors; a program whose actor is gone ends by itself."""
    if not ray.is_initialized():
        return
    ray.wait([server.stop.remote() for server in servers], num_returns=len(servers), timeout=STOP_SECONDS)
    for server in servers:
        ray.kill(server)
