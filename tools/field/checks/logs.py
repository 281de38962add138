"""No daemon logged a traceback, and Slurm's daemons no error of ours, in all that was done to them."""

import re
from typing import Final

from tools.field.lab import CheckError, Lab, expect

NAME: Final = "log without tracebacks"
_BAD: Final = re.compile(r"^Traceback|^\w*(Error|Exception): |Unrecognized request", re.MULTILINE)
"""What no log may have."""
_STATUS: Final = r"status=(?:6/ABRT|11/SEGV)"
_ENDED: Final = re.compile(rf"^(?P<unit>\S+): (?:.*{_STATUS}|Failed with result '(?P<result>[^']+)')", re.MULTILINE)


def crash(manager: str) -> str | None:
    """Return systemd's line on the first process that crashed, None where there is none, from its messages alone.

    A daemon that the watchdog aborts is none: it writes the stacks of its threads first, on purpose. What a daemon
    writes reaches the journal in another order than systemd's messages on it, and may stand between these.
    """
    aborted: dict[str, str] = {}
    for end in _ENDED.finditer(manager):
        unit = end["unit"]
        if end["result"] == "watchdog":
            aborted.pop(unit, None)
        elif unit in aborted:
            return aborted[unit]
        elif end["result"] is None:
            aborted[unit] = end[0]
    return next(iter(aborted.values()), None)


def run(lab: Lab) -> None:
    """Read the journal of our units, and what Slurm's daemons say of the plugin and of requests they do not know."""
    read = "journalctl --unit='gpuwaste-*' --output=cat"
    journal = lab.machine.run(read)
    expect(bool(journal.strip()), "the journal has nothing of our units")
    if bad := _BAD.search(journal):
        around = journal[max(0, bad.start() - 300) : bad.end() + 700]
        raise CheckError(f"the journal: {around}")
    manager = lab.machine.run(f"{read} --identifier=systemd")
    expect(bool(manager.strip()), "the journal has nothing of systemd on our units")
    line = crash(manager)
    expect(line is None, f"a daemon crashed: {line}")
    slurm = lab.machine.run("cat /var/log/slurm/*.log")
    ours = re.compile(rf"error.*gpuwaste|gpuwaste.*error|{_BAD.pattern}|{_STATUS}", re.MULTILINE)
    lines = [line for line in slurm.splitlines() if ours.search(line)]
    expect(not lines, f"Slurm's logs: {lines[:3]}")
