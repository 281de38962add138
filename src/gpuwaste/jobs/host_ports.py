"""HostPorts: the hub's interfaces to its host: Slurm, the clock, credentials. Tests replace them."""

from collections.abc import Callable
from dataclasses import dataclass, field

from gpuwaste.core.clock import Clock
from gpuwaste.core.groups import unix_groups
from gpuwaste.net.request_signing import Checkers, CredentialIssuer
from gpuwaste.slurm.clients.client import SlurmClient


@dataclass(frozen=True, slots=True)
class HostPorts:
    """The interfaces of the hub's parts to the host."""

    slurm: SlurmClient
    clock: Clock
    checkers: Checkers
    """How callers are authenticated."""
    groups_of: Callable[[str], frozenset[str]] = field(default=unix_groups, kw_only=True)
    agents: CredentialIssuer | None = field(default=None, kw_only=True)
    """The credentials by which agents recognize the hub; None where the hub requests no samples."""
