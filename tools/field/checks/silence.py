"""In all that was done, no packet and no question of DNS went to elsewhere; the watch that says so is tried first."""

from typing import Final

from tools.field.lab import Lab, expect

NAME: Final = "no packet, no DNS question to elsewhere"
_HOST: Final = "control.field.invalid"
_ADDRESS: Final = "192.0.2.1"


def run(lab: Lab) -> None:
    """Ask and send something, which the watch must have seen; then it must have nothing else."""
    lab.machine.try_run(f"getent hosts {_HOST}; timeout 1 curl --silent http://{_ADDRESS}/")
    seen = lab.machine.heard()
    expect(any(_HOST in line for line in seen), f"the watch did not see the question for {_HOST}")
    expect(any(_ADDRESS in line for line in seen), f"the watch did not see the packet to {_ADDRESS}")
    others = [line for line in seen if _HOST not in line and _ADDRESS not in line]
    expect(not others, f"{len(others)} to elsewhere: {' | '.join(dict.fromkeys(others))[:1000]}")
