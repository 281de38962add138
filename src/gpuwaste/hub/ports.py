"""HubPorts: where the hub meets its host: Slurm, the clock, credentials, users and groups."""

import pwd
from collections.abc import Callable
from dataclasses import dataclass, field

from gpuwaste.core.errors import ConfigError
from gpuwaste.core.groups import user_name
from gpuwaste.hub.service_limits import ServiceLimits
from gpuwaste.jobs.host_ports import HostPorts
from gpuwaste.net.signing import Checkers


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
class HubPorts(HostPorts):
    """Where the hub itself meets the host: credentials and users too."""

    checkers: Checkers
    name_of: Callable[[int], str] = field(default=user_name, kw_only=True)
    uid_of: Callable[[str, Checkers], int | None] = field(default=agent_uid, kw_only=True)
    actor_uid: Callable[[str], int | None] = field(default=uid_named, kw_only=True)
    limits: ServiceLimits | None = field(default=None, kw_only=True)
    """What a client may take; None for what the configuration says."""
