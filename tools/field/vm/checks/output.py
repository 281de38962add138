"""A job's output, byte for byte, while ours start, are killed and ask; then a plain slurmd -G, which changes it."""

import re
from typing import Final

from tools.field.base import NAME as HOST
from tools.field.lab import Lab, expect

NAME: Final = "output of jobs untouched, with the control"
_FLAG: Final = "/tmp/field-output-ends"  # noqa: S108 of a machine that nobody else uses
_SCRIPT: Final = f"""echo begins
echo warns >&2
until [ -e {_FLAG} ]; do sleep 1; done
echo ends"""
_WRITTEN: Final = "begins\nwarns\n"
_ASKED: Final = (
    "gpuwaste agent status", "gpuwaste report --allusers || :", "gpuwaste now --hours 1 --once || :",
)  # fmt: skip
_LINE: Final = re.compile(r"^slurmstepd\S*: error: .*\n", re.MULTILINE)


def run(lab: Lab) -> None:
    """Do all that asks Slurm while the job runs; it ends by itself when it is told to."""
    lab.machine.run(f"rm -f {_FLAG}")
    job = lab.play("alice", 1, [], script=_SCRIPT)
    try:
        lab.machine.run("systemctl restart gpuwaste-agent")
        lab.sampled([job])
        before = int(lab.unit("gpuwaste-agent", "NRestarts"))
        lab.machine.run("systemctl kill --signal=KILL gpuwaste-agent")
        lab.started_again("gpuwaste-agent", before, 60)
        lab.sampled([job])
        lab.doctor()
        for words in _ASKED:
            lab.machine.run(words)
        said = lab.output(job)
        expect(said == _WRITTEN, f"job {job} wrote {said!r}")
        lab.machine.try_run(f"slurmd -G -N {HOST}", user="bob")
        told = lab.machine.wait(f"cat /tmp/job-{job}.out", 20, "the control to change the output", wanted="error: ")
        expect(_LINE.sub("", told) == _WRITTEN, f"the control wrote {told!r}")
    finally:
        lab.machine.run(f"touch {_FLAG}")
    lab.ended(job, 60)
    said = lab.output(job)
    expect(_LINE.sub("", said) == f"{_WRITTEN}ends\n", f"job {job} wrote {said!r}")
