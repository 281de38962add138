"""A configuration that cannot be used ends a daemon with exit status 2 and a clear line; it is not tried again."""

import time
from typing import Final

from tools.field.lab import CONFIGURATION, UNITS, Lab, expect

NAME: Final = "exit 2 for a bad configuration"
_RESTART_S: Final = 17.0
"""A little more than RestartSec: a unit that is tried again is so by then."""


def run(lab: Lab) -> None:
    """Break the file, start all daemons, and mend it."""
    good = lab.machine.read(CONFIGURATION)
    lab.machine.write(CONFIGURATION, f"{good}\nnonsense = [\n")
    before = {unit: lab.unit(unit, "NRestarts") for unit in UNITS}
    try:
        for unit in UNITS:
            lab.machine.try_run(f"systemctl restart {unit}")
            status = lab.unit(unit, "ExecMainStatus")
            expect(status == "2", f"{unit} ended with {status}: {lab.last_words(unit)}")
            expect(
                CONFIGURATION in lab.last_words(unit), f"{unit} does not name {CONFIGURATION}: {lab.last_words(unit)}"
            )
        time.sleep(_RESTART_S)
        for unit in UNITS:
            state = lab.unit(unit, "ActiveState")
            expect(state == "failed", f"{unit} is {state}")
            expect(lab.unit(unit, "NRestarts") in {"0", before[unit]}, f"{unit} was tried again")
    finally:
        lab.machine.write(CONFIGURATION, good)
        lab.machine.run(f"systemctl reset-failed {' '.join(UNITS)}; systemctl start {' '.join(UNITS)}")
    lab.active()
    lab.well("after a bad configuration", timeout_s=60)
