"""AgentPorts: the agent's interfaces to its node, Slurm and the hub; a recorder or a recording can replace them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from gpuwaste.agent.collectors import Collectors, CollectorSettings, create_collectors
from gpuwaste.agent.device_map import DeviceMap, node_device_map
from gpuwaste.agent.own_node import OwnNode
from gpuwaste.agent.sample_server import Askers
from gpuwaste.core.clock import Clock
from gpuwaste.core.repeat_suppressor import EventLog
from gpuwaste.net.hub_client import HubClient
from gpuwaste.net.systemd_notifier import SILENT, SystemdNotifier
from gpuwaste.slurm.clients.client import SlurmClient


@dataclass(frozen=True, slots=True)
class NodeEdges:
    """Factories of the parts that access the node; a recorder wraps them, and a recording replaces them."""

    collectors: Callable[[Sequence[str], CollectorSettings], Collectors] = create_collectors
    device_map: Callable[..., DeviceMap] = node_device_map


NODE: Final = NodeEdges()


@dataclass(frozen=True, slots=True)
class AgentPorts:
    """What the parts of an agent receive in addition to its configuration."""

    site: OwnNode
    clock: Clock
    events: EventLog
    slurm: SlurmClient
    hub: HubClient
    askers: Askers | None = None
    edges: NodeEdges = NODE
    notifier: SystemdNotifier = SILENT
