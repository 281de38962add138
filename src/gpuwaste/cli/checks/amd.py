"""AMD's libraries, where the collector `amd` is configured. They are loaded but not called: the agent does that."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from gpuwaste.cli.check import Check, Role, Status, Surroundings
from gpuwaste.cli.checks._hardware_access import check_groups, loadable

PLACE: Final = 51
NAME: Final = "amd"
ROLES: Final = frozenset({Role.AGENT})
_DEV: Final = Path("/dev")


def check(around: Surroundings) -> Iterator[Check]:
    """Load a library as the agent does, and check who may open the GPUs' device files."""
    if "amd" not in around.config.agent.collectors:
        return
    # Here and not above: other hosts than compute nodes have no agent.
    from gpuwaste.agent.collectors import _amdsmi, _rocm_smi

    found = loadable((*_amdsmi.NAMES, *_rocm_smi.NAMES))
    if found is None:
        line = "neither libamd_smi.so nor librocm_smi64.so can be loaded"
        yield Check(NAME, Status.WARN, line, "on a node with AMD GPUs: install amd-smi-lib; elsewhere: nothing to do")
        return
    yield Check(NAME, Status.OK, f"{found} can be loaded")
    yield from check_groups(NAME, (_DEV / "kfd", *_DEV.glob("dri/renderD*")), "/dev/kfd and render nodes", "AMD")
