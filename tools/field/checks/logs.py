"""No daemon logged a traceback, and Slurm's daemons no error of ours, in all that was done to them."""

import re
from typing import Final

from tools.field.lab import CheckError, Lab, expect

NAME: Final = "log without tracebacks"
_BAD: Final = re.compile(
    r"^Traceback|^\w*(Error|Exception): |Unrecognized request|status=(6/ABRT|11/SEGV)(?!.*\n.*result 'watchdog')",
    re.MULTILINE,
)
"""What no log may have. A daemon that the watchdog aborts writes the stacks of its threads first, on purpose."""


def run(lab: Lab) -> None:
    """Read the journal of our units, and what Slurm's daemons say of the plugin and of requests they do not know."""
    journal = lab.machine.run("journalctl --unit='gpuwaste-*' --output=cat")
    expect(bool(journal.strip()), "the journal has nothing of our units")
    if bad := _BAD.search(journal):
        around = journal[max(0, bad.start() - 300) : bad.end() + 700]
        raise CheckError(f"the journal: {around}")
    slurm = lab.machine.run("cat /var/log/slurm/*.log")
    ours = re.compile(rf"error.*gpuwaste|gpuwaste.*error|{_BAD.pattern}", re.MULTILINE)
    lines = [line for line in slurm.splitlines() if ours.search(line)]
    expect(not lines, f"Slurm's logs: {lines[:3]}")
