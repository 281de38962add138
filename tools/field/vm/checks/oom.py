"""A job over its memory is killed alone: sacct and `gpuwaste job` say that memory ran out, and daemons go on."""

from typing import Final

from tools.field.lab import UNITS, Lab, expect

NAME: Final = "a job out of memory"
_STATE: Final = "OUT_OF_MEMORY"
_SCRIPT: Final = "sleep 15\npython3 -c 'taken = b\"x\" * (400 << 20); print(len(taken))'"


def run(lab: Lab) -> None:
    """Take four times what the job asked for."""
    before = [lab.unit(unit, "NRestarts") for unit in UNITS]
    job = lab.play("bob", 1, [], script=_SCRIPT)
    state = f"sacct --noheader --parsable2 --allocations --format=State --jobs={job}"
    lab.machine.wait(state, 60, f"sacct to have job {job} as {_STATE}", wanted=_STATE, poll_s=2)
    expect(str(400 << 20) not in lab.output(job), f"job {job} had the memory")
    lab.machine.wait(
        f"gpuwaste job {job} --json", 150, f"the hub to say so of job {job}", wanted=_STATE, user="bob", poll_s=3
    )
    said = lab.machine.run(f"gpuwaste job {job}", user="bob")
    expect("memory" in said.lower(), f"gpuwaste job {job}: {said}")
    lab.said[NAME] = said
    expect([lab.unit(unit, "NRestarts") for unit in UNITS] == before, "a unit was started again")
    lab.active()
