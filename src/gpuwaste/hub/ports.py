"""HubPorts: where the hub meets its host: Slurm, the clock, credentials, users and groups."""

import pwd
from collections.abc import Callable
from dataclasses import dataclass

from gpuwaste.core.clock import Clock
from gpuwaste.core.errors import ConfigError
from gpuwaste.core.groups import unix_groups, user_name
from gpuwaste.hub.authentication import Checkers
from gpuwaste.hub.services import ServiceLimits
from gpuwaste.net.identity import CredentialIssuer
from gpuwaste.slurm.clients.client import SlurmClient


def uid_named(name: str) -> int | None:
    """Return the uid of a user of this host, None where there is none."""
    try:
        return pwd.getpwnam(name).pw_uid
    except KeyError:
        return None


def agent_uid(name: str, checkers: Checkers) -> int | None:
    """Return the uid that agents' credentials carry, None where no munge is used. Raises ConfigError."""
    found = uid_named(name)
    if found is None and "munge" in checkers:
        raise ConfigError(f"[hub] agent_user: this host has no user {name!r}")
    return found


@dataclass(frozen=True, slots=True)
class HubPorts:
    """Where the hub meets the host: tests put others in their place, and nothing behind them."""

    slurm: SlurmClient
    clock: Clock
    checkers: Checkers
    name_of: Callable[[int], str] = user_name
    groups_of: Callable[[str], frozenset[str]] = unix_groups
    uid_of: Callable[[str, Checkers], int | None] = agent_uid
    actor_uid: Callable[[str], int | None] = uid_named
    agents: CredentialIssuer | None = None
    """By which agents know the hub; None where they are not asked for samples."""
    limits: ServiceLimits | None = None
    """What a client may take; None for what the configuration says."""
