"""ClusterFacts: the cluster's name and its nodes' addresses from Slurm, cached for when Slurm is down."""

import ipaddress
import socket
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Self

from gpuwaste.core import log_event
from gpuwaste.core.clock import Clock
from gpuwaste.core.config import Config
from gpuwaste.core.errors import GpuwasteError, ParseError, SlurmError
from gpuwaste.core.parts import Part, Parts
from gpuwaste.jobs.host_ports import HostPorts
from gpuwaste.slurm.clients.client import SlurmClient

if TYPE_CHECKING:
    from gpuwaste.slurm.site.cluster_model import Node

REFRESH_S: Final = 300.0
ASK_AGAIN_S: Final = 15.0  # shortest time between two queries, whatever the callers request
_NODES_STALE: Final = log_event.warning(
    "node-addresses-stale: cannot refresh node addresses: {error}",
    "slurmctld did not answer. Hours of a new node may be refused until it does; its agent keeps them.",
)

Resolver = Callable[[str], frozenset[str]]


class UnknownSiteError(GpuwasteError):
    """Slurm has not been reached yet, so facts that depend on it are unknown."""


class ClusterFacts(Part):
    """Facts about the cluster; any thread may call, one at a time queries Slurm."""

    def __init__(self, slurm: SlurmClient, clock: Clock, cluster: str = "", resolve: Resolver | None = None) -> None:
        self._slurm = slurm
        self._clock = clock
        self._cluster = cluster
        self._resolve = resolve or resolve_ipv4
        self._lock = threading.Lock()
        self._nodes: dict[str, frozenset[str]] | None = None
        self._asked_us: int | None = None
        self.nodes: tuple[Node, ...] = ()  # from Slurm's last answer
        self.nodes_read: int | None = None  # time of that answer, UTC seconds

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of a hub."""
        ports = parts.get(HostPorts)
        return cls(ports.slurm, ports.clock, parts.get(Config).common.cluster)

    @property
    def known_cluster(self) -> str:
        """The cluster's name as far as it is known, without a query."""
        return self._cluster

    def known(self) -> str:
        """Return the cluster's name without querying Slurm, "" where it is not known yet."""
        return self.known_cluster

    def cluster(self) -> str:
        """Return the cluster's name. Raises UnknownSiteError."""
        if not self._cluster:
            try:
                self._cluster = self._slurm.cluster_name()
            except (SlurmError, ParseError) as error:
                raise UnknownSiteError(f"the cluster's name is unknown: {error}") from error
        return self._cluster

    def addresses(self, node: str) -> frozenset[str]:
        """Return the IPv4 addresses of a node's NodeAddr, empty for no node. Raises UnknownSiteError."""
        nodes = self._nodes
        if nodes is None or node not in nodes or self._age_s() > REFRESH_S:
            nodes = self._ask()
        if nodes is None:
            raise UnknownSiteError("the cluster's nodes are unknown: slurmctld has not answered yet")
        return nodes.get(node, frozenset())

    def is_node(self, name: str) -> bool:
        """Return whether Slurm has a node of that name. Raises UnknownSiteError."""
        return bool(self.addresses(name))

    def refresh(self) -> None:
        """Query Slurm's nodes again where the answer is old."""
        if self._age_s() > REFRESH_S:
            self._ask()

    def _age_s(self) -> float:
        return float("inf") if self._asked_us is None else (self._clock.mono_us() - self._asked_us) / 1e6

    def _ask(self) -> dict[str, frozenset[str]] | None:
        """Query Slurm, unless another caller just did; keep the old answer where it does not answer."""
        with self._lock:
            if self._age_s() < ASK_AGAIN_S:
                return self._nodes
            try:
                nodes = tuple(self._slurm.nodes())
                self._nodes = {n.name: self._resolve(n.address or n.name) | {n.address} for n in nodes}
                self.nodes, self.nodes_read = nodes, self._clock.utc_s()
            except (SlurmError, ParseError) as error:
                _NODES_STALE.log(error=error)
            self._asked_us = self._clock.mono_us()
            return self._nodes


def resolve_ipv4(host: str) -> frozenset[str]:
    """Return a host's IPv4 addresses, empty where it has none."""
    try:
        return frozenset({str(ipaddress.IPv4Address(host))})
    except ValueError:
        pass
    try:
        return frozenset(str(info[4][0]) for info in socket.getaddrinfo(host, None, family=socket.AF_INET))
    except OSError:
        return frozenset()
