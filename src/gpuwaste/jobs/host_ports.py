"""HostPorts: where parts of the hub meet its host: Slurm, the clock, credentials. Tests put others in their place."""

from collections.abc import Callable
from dataclasses import dataclass, field

from gpuwaste.core.clock import Clock
from gpuwaste.core.groups import unix_groups
from gpuwaste.net.request_signing import Checkers, CredentialIssuer
from gpuwaste.slurm.clients.client import SlurmClient


@dataclass(frozen=True, slots=True)
class HostPorts:
    """Where the hub's parts meet the host, and nothing behind it."""

    slurm: SlurmClient
    clock: Clock
    checkers: Checkers
    """How callers prove themselves."""
    groups_of: Callable[[str], frozenset[str]] = field(default=unix_groups, kw_only=True)
    agents: CredentialIssuer | None = field(default=None, kw_only=True)
    """By which agents know the hub; None where they are not asked for samples."""
