"""HubPorts: the hub's interface to its host: Slurm, the clock, credentials, users, groups; and limits of clients."""

from collections.abc import Callable
from dataclasses import dataclass, field

from gpuwaste.core.errors import ConfigError
from gpuwaste.core.groups import uid_named, user_name
from gpuwaste.hub.admission_control import AdmissionLimits
from gpuwaste.jobs.host_ports import HostPorts
from gpuwaste.net.batch import MAX_BATCH_BYTES
from gpuwaste.net.request_signing import Checkers


@dataclass(frozen=True, slots=True)
class ServiceLimits:
    """Limits of a client: bytes of a body, seconds for sending it, seconds of waiting for the map, the gate."""

    max_body_bytes: int = MAX_BATCH_BYTES
    body_deadline_s: float = 30.0
    map_wait_s: float = 10.0
    gate: AdmissionLimits = field(default_factory=AdmissionLimits)


def agent_uid(name: str, checkers: Checkers) -> int | None:
    """Return the uid that agents' credentials carry, None where no munge is used. Raises ConfigError."""
    found = uid_named(name)
    if found is None and "munge" in checkers:
        raise ConfigError(f"[hub] agent_user: this host has no user {name!r}")
    return found


@dataclass(frozen=True, slots=True)
class HubPorts(HostPorts):
    """The hub's own interface to the host: users too."""

    name_of: Callable[[int], str] = field(default=user_name, kw_only=True)
    uid_of: Callable[[str, Checkers], int | None] = field(default=agent_uid, kw_only=True)
    limits: ServiceLimits | None = field(default=None, kw_only=True)
    """Limits of a client; None for those of the configuration."""
