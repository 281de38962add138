"""In all that was done, no packet and no question of DNS went to elsewhere; the watch that says so is tried first."""

from functools import partial
from typing import Final

from gpuwaste.testing.cluster_process import wait_until
from tools.field.lab import Lab, expect

NAME: Final = "no packet, no DNS question to elsewhere"
_HOST: Final = "control.field.invalid"
_ADDRESS: Final = "192.0.2.1"
_OF_SLURM: Final = "question for 0.0.0.0.in-addr.arpa"
"""slurmctld asks for the name of the address that it listens on, without gpuwaste too."""
_SEEN_S: Final = 10.0


def run(lab: Lab) -> None:
    """Ask and send something, which the watch must have seen; then it must have nothing else."""
    lab.machine.try_run(f"getent hosts {_HOST} || :\ntimeout 1 curl --silent http://{_ADDRESS}/ || :")
    for what in (_HOST, _ADDRESS):
        wait_until(partial(_heard, lab, what), _SEEN_S, f"the watch to see {what}", lambda: str(lab.machine.heard()))
    others = [line for line in lab.machine.heard() if not any(word in line for word in (_HOST, _ADDRESS, _OF_SLURM))]
    expect(not others, f"{len(others)} to elsewhere: {' | '.join(dict.fromkeys(others))[:1000]}")


def _heard(lab: Lab, what: str) -> bool:
    return any(what in line for line in lab.machine.heard())
