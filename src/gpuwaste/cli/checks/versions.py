"""The versions of gpuwaste and Slurm, and the cluster's name."""

from collections.abc import Iterator
from typing import Final

from gpuwaste.cli.check import EVERYWHERE, Check, Status, Surroundings
from gpuwaste.core.version import own_version

PLACE: Final = 10
NAME: Final = "version"
ROLES: Final = EVERYWHERE
_TRIED: Final = ((22, 5), (26, 5))


def check(around: Surroundings) -> Iterator[Check]:
    """Report both versions; the configured name of the cluster must be Slurm's."""
    slurm = around.slurm.config()
    tried = _TRIED[0] <= _version(slurm.version) <= _TRIED[1]
    found = f"gpuwaste {own_version()}, Slurm {slurm.version or 'unknown'}, cluster {slurm.cluster_name}"
    yield Check(NAME, Status.OK if tried else Status.WARN, found, "" if tried else "tested with Slurm 22.05 to 26.05")
    named = around.config.common.cluster
    if named and named != slurm.cluster_name:
        yield Check("cluster", Status.FAIL, f"[common] cluster is {named!r}", f"set it to {slurm.cluster_name!r} or ''")


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".")[:2] if part.isdigit())
