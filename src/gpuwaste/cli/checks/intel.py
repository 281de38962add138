"""Level Zero, where the collector `intel` is configured. It is loaded but not called: the agent does that."""

import ctypes
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from gpuwaste.cli.check import Check, Role, Status, Surroundings
from gpuwaste.cli.checks._hardware_access import check_groups, loadable, status_file

PLACE: Final = 52
NAME: Final = "intel"
ROLES: Final = frozenset({Role.AGENT})


def check(around: Surroundings) -> Iterator[Check]:
    """Load the library as the agent does, and check the rights without which the GPUs' use is unknown."""
    if "intel" not in around.config.agent.collectors:
        return
    # Here and not above: other hosts than compute nodes have no agent.
    from gpuwaste.agent.collectors import _level_zero

    found = loadable(_level_zero.NAMES)
    if found is None:
        line = "libze_loader.so.1 cannot be loaded"
        yield Check(NAME, Status.WARN, line, "on a node with Intel GPUs: install level-zero; elsewhere: nothing to do")
        return
    if not hasattr(ctypes.CDLL(found), _level_zero.OPENER):
        line = f"{found} has no {_level_zero.OPENER}: it is too old"
        yield Check(NAME, Status.WARN, line, "install a newer release of level-zero (how-to Intel)")
        return
    yield Check(NAME, Status.OK, f"{found} can be loaded")
    yield from check_groups(NAME, tuple(Path("/dev").glob("dri/renderD*")), "render nodes", "Intel")
    status = status_file(around.config)
    if status is not None:
        yield _rights(status)


def _rights(status: Path) -> Check:
    """Check whether the running agent has CAP_PERFMON."""
    from gpuwaste.agent.collectors._capabilities import PERFMON, holds

    if holds(status, PERFMON):
        return Check(NAME, Status.OK, "the agent has CAP_PERFMON")
    line = "the agent has no CAP_PERFMON: it cannot read the use of Intel GPUs"
    return Check(NAME, Status.WARN, line, "install the drop-in of the unit (how-to Intel)")
