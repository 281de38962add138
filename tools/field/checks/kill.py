"""kill -9 of all three daemons while a job runs: systemd starts them again, and the job is confirmed all the same."""

import time
from typing import Final

from tools.field.lab import UNITS, Lab, expect

NAME: Final = "kill -9 of every daemon"
_SECONDS: Final = 60
_EDGES_S: Final = 5.0
"""Of a job whose agent is never away: before its first sample, and after its last."""


def run(lab: Lab) -> None:
    """Kill them once the job is sampled; what is unknown is no more than the time until it is sampled again."""
    lab.read_accounting_often()
    job = lab.play("alice", 1, [f"{_SECONDS}:70:5000"])
    lab.sampled([job])
    before = {unit: int(lab.unit(unit, "NRestarts")) for unit in UNITS}
    killed = time.monotonic()
    lab.machine.run(f"systemctl kill --signal=KILL {' '.join(UNITS)}")
    for unit in UNITS:
        lab.started_again(unit, before[unit], 60)
    lab.active()
    lab.sampled([job])
    away_s = (time.monotonic() - killed) / lab.machine.stretch  # `confirmed` multiplies by it
    lab.ended(job, _SECONDS + 30)
    means = lab.confirmed(job, "alice", unknown_s=away_s + _EDGES_S)
    expect(len(means) == 1 and abs(means[0] - 70) <= 5, f"job {job} played 70 %: {means}")  # noqa: PLR2004
    lab.well("after kill -9", timeout_s=60)
