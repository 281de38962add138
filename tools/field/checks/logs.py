"""No daemon logged a traceback, and Slurm's daemons no error of ours, in all that was done to them."""

import re
from typing import Final

from tools.field.lab import CheckError, Lab, expect

NAME: Final = "log without tracebacks"
_BAD: Final = re.compile(r"^Traceback|^\w*(Error|Exception): |Unrecognized request", re.MULTILINE)
"""What no log may have."""
_ENDED: Final = re.compile(
    r"^(?P<unit>\S+): (?:.*status=(?P<status>6/ABRT|11/SEGV)|Failed with result '(?P<result>[^']+)')", re.MULTILINE
)


def crash(manager: str) -> str | None:
    """Return systemd's line on the first process that crashed, None where there is none, from its messages alone.

    A daemon that the watchdog aborts is none: it writes the stacks of its threads first, on purpose. What a daemon
    writes reaches the journal in another order than systemd's messages on it, and may stand between these.
    """
    crashed: dict[str, str] = {}
    for end in _ENDED.finditer(manager):
        if end["status"]:
            crashed[end["unit"]] = end[0]
        elif end["result"] == "watchdog":
            crashed.pop(end["unit"], None)
    return next(iter(crashed.values()), None)


def run(lab: Lab) -> None:
    """Read the journal of our units, and what Slurm's daemons say of the plugin and of requests they do not know."""
    read = "journalctl --unit='gpuwaste-*' --output=cat"
    journal = lab.machine.run(read)
    expect(bool(journal.strip()), "the journal has nothing of our units")
    if bad := _BAD.search(journal):
        around = journal[max(0, bad.start() - 300) : bad.end() + 700]
        raise CheckError(f"the journal: {around}")
    line = crash(lab.machine.run(f"{read} --identifier=systemd"))
    expect(line is None, f"a daemon crashed: {line}")
    slurm = lab.machine.run("cat /var/log/slurm/*.log")
    ours = re.compile(rf"error.*gpuwaste|gpuwaste.*error|{_BAD.pattern}", re.MULTILINE)
    lines = [line for line in slurm.splitlines() if ours.search(line)]
    expect(not lines, f"Slurm's logs: {lines[:3]}")
