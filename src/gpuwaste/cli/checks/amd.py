"""AMD's libraries, where the collector `amd` is configured. They are loaded but not called: the agent does that."""

import grp
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from gpuwaste.cli.check import Check, Role, Status, Surroundings

PLACE: Final = 51
NAME: Final = "amd"
ROLES: Final = frozenset({Role.AGENT})


def check(around: Surroundings) -> Iterator[Check]:
    """Load a library as the agent does, and look who may open the GPUs' device files."""
    if "amd" not in around.config.agent.collectors:
        return
    # Here and not above: other hosts than compute nodes have no agent.
    from gpuwaste.agent.collectors import _amdsmi, _rocm_smi
    from gpuwaste.agent.collectors._library import load

    found = next((name for name in (*_amdsmi.NAMES, *_rocm_smi.NAMES) if load((name,)) is not None), None)
    if found is None:
        line = "neither libamd_smi.so nor librocm_smi64.so can be loaded"
        yield Check(NAME, Status.WARN, line, "on a node with AMD GPUs: install amd-smi-lib; elsewhere: nothing to do")
        return
    yield Check(NAME, Status.OK, f"{found} can be loaded")
    yield from _devices(Path("/dev"))


def _devices(dev: Path) -> Iterator[Check]:
    """Name the groups that the agent has to be in to open the device files."""
    groups = sorted({group for path in (dev / "kfd", *dev.glob("dri/renderD*")) if (group := _group(path))})
    if groups:
        yield Check(
            NAME,
            Status.OK,
            f"/dev/kfd and render nodes belong to group {', '.join(groups)}: "
            "the unit needs it in SupplementaryGroups (how-to AMD)",
        )


def _group(path: Path) -> str:
    """Return the group without which a device file cannot be opened, "" where none is needed."""
    try:
        status = os.stat(path)  # noqa: PTH116 one call for mode and group
        return "" if status.st_mode & stat.S_IROTH and status.st_mode & stat.S_IWOTH else grp.getgrgid(status.st_gid)[0]
    except (OSError, KeyError):
        return ""
