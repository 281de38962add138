"""AdvisorPorts: what the parts of an advisor use: clients, clock, the cluster's name, and the permitted uids."""

import os
import pwd
import re
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gpuwaste.core import log_event
from gpuwaste.core.clock import Clock
from gpuwaste.core.config import Config
from gpuwaste.core.errors import ConfigError, GpuwasteError, SlurmError
from gpuwaste.net.hub_client import HubClient
from gpuwaste.slurm.clients.client import SlurmClient
from gpuwaste.slurm.formats.conf_file import setting_of

_RETRY_S: Final = 5.0
_SLURM_CONF: Final = "/etc/slurm/slurm.conf"
_PRINTED: Final = re.compile(r"(.*)\(\d+\)")  # scontrol prints SlurmUser=slurm(64030)
_NO_CLUSTER: Final = log_event.warning(
    "advisor-waits-for-slurm: waiting for Slurm: ClusterName is unknown",
    "slurmctld does not answer and slurm.conf is not found: start slurmctld, or set `[common] cluster`.",
)
_NO_SLURM_USER: Final = log_event.warning(
    "slurm-user-unknown: SlurmUser is unknown, only root may use the advisor: set [advisor] slurm_user",
    "slurmctld runs as SlurmUser and is rejected: set the key and restart the advisor.",
)


@dataclass(frozen=True, slots=True)
class AdvisorPorts:
    """What the parts of an advisor receive besides its configuration."""

    cluster: str
    slurm: SlurmClient
    hub: HubClient
    clock: Clock
    state_dir: Path
    allowed: frozenset[int]
    """The uids that may send requests."""


def cluster_of(
    config: Config,
    slurm: SlurmClient,
    clock: Clock,
    stop: threading.Event,
    waiting: Callable[[str, float], None] = lambda *_: None,
) -> str:
    """Return the cluster's name: configured, from slurmctld, or from slurm.conf; wait until one of them has it.

    Returns "" where `stop` was set meanwhile. `waiting` is called with the reason, and the seconds until its next call.
    """
    said = False
    while True:
        name = config.common.cluster or _setting(config, slurm, "ClusterName")
        if name:
            return name
        if not said:
            _NO_CLUSTER.log()
            said = True
        waiting("waiting for Slurm: its ClusterName is not known", _RETRY_S + 2 * config.common.slurm_timeout_s)
        if clock.wait(stop, _RETRY_S):
            return ""


def allowed_uids(config: Config, slurm: SlurmClient) -> frozenset[int]:
    """Return the uids that may send requests: root and SlurmUser. Raises ConfigError for a user unknown here."""
    name = config.advisor.slurm_user or _setting(config, slurm, "SlurmUser")
    if not name:
        _NO_SLURM_USER.log()
        return frozenset({0})
    found = _PRINTED.fullmatch(name)
    return frozenset({0, slurm_uid(found[1] if found else name)})


def slurm_uid(name: str) -> int:
    """Return a user's uid by name or number. Raises ConfigError."""
    try:
        return int(name) if name.isdigit() else pwd.getpwnam(name).pw_uid
    except KeyError as error:
        raise ConfigError(f"SlurmUser {name!r} is not a user on this host: set [advisor] slurm_user") from error


def _setting(config: Config, slurm: SlurmClient, name: str) -> str:
    """Return a setting from slurmctld, else from slurm.conf, "" where neither has a value."""
    try:
        return slurm.config().settings.get(name, "")
    except (SlurmError, GpuwasteError):
        path = Path(config.common.slurm_conf or os.environ.get("SLURM_CONF") or _SLURM_CONF)
    with suppress(ConfigError):
        return setting_of(path, name)
    return ""
