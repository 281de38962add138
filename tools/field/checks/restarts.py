"""Slurm's daemons, munge and MariaDB are restarted while a job runs: it ends well and is confirmed."""

from typing import Final

from tools.field import site
from tools.field.lab import UNITS, Lab, expect

NAME: Final = "restart of Slurm, munge, MariaDB"
_SECONDS: Final = 40


def run(lab: Lab) -> None:
    """Restart one after the other, as at the update of a host."""
    lab.read_accounting_often()
    job = lab.play("alice", 1, [f"{_SECONDS}:60:5000"], script="echo begins")
    lab.sampled([job])
    before = {unit: lab.unit(unit, "MainPID") for unit in UNITS}
    for daemon in ("slurmctld", "slurmd", "munge", "mariadb", "slurmdbd"):
        lab.machine.run(f"systemctl restart {daemon}")
    lab.active((*site.DAEMONS, *UNITS))
    lab.ended(job, _SECONDS + 60)
    means = lab.confirmed(job, "alice")
    expect(len(means) == 1 and abs(means[0] - 60) <= 3, f"job {job} played 60 %: {means}")  # noqa: PLR2004
    expect(lab.output(job) == "begins\n", f"job {job} wrote {lab.output(job)!r}")
    lab.well("after restarts", timeout_s=60)
    for unit in UNITS:
        expect(
            lab.unit(unit, "MainPID") == before[unit], f"{unit} ended with a daemon of Slurm: {lab.last_words(unit)}"
        )
