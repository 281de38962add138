"""A daemon that gives no sign of life is ended by systemd's watchdog and started again."""

from typing import Final

from tools.field.lab import Lab, expect

NAME: Final = "watchdog"
_UNIT: Final = "gpuwaste-advisor"
"""The one whose watchdog is the shortest, a minute."""


def run(lab: Lab) -> None:
    """Stop the advisor's process as if it hung; meanwhile jobs are taken, without advice."""
    main = lab.unit(_UNIT, "MainPID")
    restarts = int(lab.unit(_UNIT, "NRestarts"))
    lab.machine.run(f"kill -STOP {main}")
    lab.ended(lab.play("bob", 1, [], script="sleep 1"), 60)
    lab.started_again(_UNIT, restarts, 150)
    lab.active()
    expect(lab.unit(_UNIT, "MainPID") != main, f"{_UNIT} has the same process")
    journal = lab.machine.run(f"journalctl --unit={_UNIT} --output=cat | grep -i watchdog | tail -n 1")
    expect("atchdog" in journal, "no word of the watchdog in the journal")
    lab.well("after the watchdog", timeout_s=60)
