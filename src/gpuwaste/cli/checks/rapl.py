"""The energy counters of the CPUs, where the collector `rapl` is configured: which there are, and who may read them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from gpuwaste.cli.check import Check, Role, Status, Surroundings
from gpuwaste.cli.checks._hardware_access import Reader, agent_reader, owner

PLACE: Final = 53
NAME: Final = "rapl"
ROLES: Final = frozenset({Role.AGENT})
_SYS: Final = Path("/sys")


def check(around: Surroundings) -> Iterator[Check]:
    """Check the counters as the agent will use them; none is read, since root may read what the agent may not."""
    config = around.config.agent
    if "rapl" not in config.collectors:
        return
    yield from check_tree(_SYS, agent_reader(around.config), config.interval_s)
    if "host" not in config.collectors:
        line = "the collector host is not configured: the energy of CPUs is not assigned to jobs"
        yield Check(NAME, Status.WARN, line, "add host to [agent] collectors")


def check_tree(sys_root: Path, reader: Reader | None, interval_s: float) -> Iterator[Check]:
    """Check the packages of one node: that there are any, and that the reader may read them, and often enough."""
    # Here and not above: other hosts than compute nodes have no agent.
    from gpuwaste.agent.bounded_calls import CollectorError
    from gpuwaste.agent.collectors.rapl import TREE, longest_s, packages, range_uj

    root = sys_root / TREE
    try:
        names = packages(root)
        longest = min(longest_s(range_uj(root / folder)) for folder in names)
    except CollectorError as error:
        mend = "on a virtual machine: take rapl out of [agent] collectors; elsewhere: modprobe intel_rapl_msr"
        yield Check(NAME, Status.WARN, str(error), mend)
        return
    yield _readable(root, names, reader)
    if interval_s >= longest:
        line = f"a counter can wrap twice in {interval_s:g} s: the energy of CPUs is unknown"
        yield Check(NAME, Status.WARN, line, f"set [agent] interval_s below {longest:.0f}")


def _readable(root: Path, names: dict[str, str], reader: Reader | None) -> Check:
    """Check whether every package's counter may be read; the first one that may not be is named."""
    from gpuwaste.agent.collectors.rapl import COUNTER

    known = ", ".join(names.values())
    if reader is None:
        line = f"{known} found; the agent does not run, and its user is not known on this host"
        return Check(NAME, Status.WARN, line, "start the agent, and run the doctor again")
    for path in (root / folder / COUNTER for folder in names):
        try:
            found = path.stat()
        except OSError as error:
            return Check(NAME, Status.WARN, f"{path}: {error.strerror}", "run gpuwaste doctor as root")
        if not reader.may_read(found):
            line = f"{path} belongs to {owner(found)}: {reader.name} cannot read it"
            return Check(NAME, Status.WARN, line, "let the agent's group read it (how-to Energy)")
    return Check(NAME, Status.OK, f"{known} can be read by {reader.name}")
