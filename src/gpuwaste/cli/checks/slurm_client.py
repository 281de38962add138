"""The client that reads accounting and single jobs from Slurm, and whether it works on this host."""

import os
from collections.abc import Iterator
from typing import Final

from gpuwaste.cli.check import Check, Role, Status, Surroundings
from gpuwaste.core.config import Config
from gpuwaste.core.errors import GpuwasteError
from gpuwaste.slurm.clients.client_choice import COMMANDS, PYSLURM, client_name, slurm_client
from gpuwaste.slurm.clients.pyslurm_probe import probe_pyslurm

PLACE: Final = 35
NAME: Final = "slurm client"
ROLES: Final = frozenset({Role.HUB, Role.LOGIN})
_ANY_JOB: Final = 1
_TIMEOUT_S: Final = 5.0
_NO_GPUS: Final = ", for single jobs only: its accounting has no GPUs, so commands read accounting"
_RELEASE: Final = 2  # numbers that name a release of Slurm: 22.05


def check(around: Surroundings) -> Iterator[Check]:
    """Send one query through the configured client."""
    config = around.config
    try:
        name = client_name(config)
        found = COMMANDS if name == COMMANDS else f"{name} {_tried(name, config, around)}"
    except GpuwasteError as error:
        yield Check(NAME, Status.FAIL, str(error), "fix this, or set [slurm] client to commands")
        return
    by_url = name != COMMANDS and not config.slurm.client
    note = ", for single jobs only: [common] slurmrestd_url is set and [slurm] client is not" if by_url else ""
    yield Check(NAME, Status.OK, f"{found}{note}")


def _tried(name: str, config: Config, around: Surroundings) -> str:
    """Return the version or the URL of what answers. Raises GpuwasteError."""
    if name == PYSLURM:
        conf = {"SLURM_CONF": config.common.slurm_conf} if config.common.slurm_conf else {}
        found, slurm = probe_pyslurm({**os.environ, **conf}, _TIMEOUT_S), around.slurm.config().version
        if _release(found.version) != _release(slurm):
            raise GpuwasteError(f"pyslurm {found.version} does not match Slurm {slurm}: install the one of its release")
        return found.version + ("" if found.tells_gpus else _NO_GPUS)
    client = slurm_client(config, _TIMEOUT_S)
    client.request(_ANY_JOB)
    return config.common.slurmrestd_url


def _release(version: str) -> list[str]:
    """Return the release that a version names: 22.5.3 and 22.05.8 are of one."""
    return [part.lstrip("0") for part in version.split(".")[:_RELEASE]]
