"""AdvisorPorts: where the advisor meets its host and the hub."""

from dataclasses import dataclass
from pathlib import Path

from gpuwaste.core.clock import Clock
from gpuwaste.net.hub_client import HubClient
from gpuwaste.slurm.clients.client import SlurmClient


@dataclass(frozen=True, slots=True)
class AdvisorPorts:
    """What the parts of an advisor are given besides its configuration."""

    cluster: str
    slurm: SlurmClient
    hub: HubClient
    clock: Clock
    state_dir: Path
    allowed: frozenset[int]
    """The uids that may ask."""
