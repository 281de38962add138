"""A job has the cores that it asked for and its processes cannot take others: ConstrainCores, by cpuset."""

import re
from typing import Final

from tools.field.lab import Lab, expect

NAME: Final = "cores of jobs"
_SCRIPT: Final = """python3 - <<'P'
import os
os.sched_setaffinity(0, range(os.cpu_count()))
print("machine", os.cpu_count())
print("job", len(os.sched_getaffinity(0)))
P
sleep 10"""


def run(lab: Lab) -> None:
    """Ask for all of the machine's in a job of one; without a cpuset it would get them."""
    job = lab.play("alice", 1, [], script=_SCRIPT)
    lab.ended(job, 60)
    said = lab.output(job)
    found = dict(re.findall(r"^(machine|job) (\d+)$", said, re.MULTILINE))
    expect(found == {"machine": str(lab.machine.cpus), "job": "1"}, f"job {job} of one core wrote {said!r}")
