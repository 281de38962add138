"""What a job writes is its own: neither an agent that starts, nor the doctor, nor a report adds a line to it."""

from typing import Final

from tools.field.lab import Lab, expect

NAME: Final = "output of jobs untouched"


def run(lab: Lab) -> None:
    """Restart the agent and ask all that asks Slurm, while a job runs that writes two lines."""
    job = lab.play("alice", 1, ["20:50:1000"], script="echo begins; echo errs >&2")
    lab.machine.run("systemctl restart gpuwaste-agent")
    lab.sampled([job])
    lab.doctor()
    lab.machine.run("gpuwaste agent status; gpuwaste report --allusers || :; gpuwaste now --hours 1 --once || :")
    lab.ended(job, 60)
    said = lab.output(job)
    expect(said == "begins\nerrs\n", f"job {job} wrote {said!r}")
