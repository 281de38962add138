"""Every unit of the page is active and stays so after a start of the machine; nothing failed or was started again."""

from typing import Final

from tools.field.lab import UNITS, Lab, expect
from tools.field.site import DAEMONS

NAME: Final = "every unit active"


def run(lab: Lab) -> None:
    """Ask systemd."""
    lab.active((*UNITS, *DAEMONS))
    failed = lab.machine.run("systemctl --failed --plain --no-legend").split("\n")[0]
    expect(not failed, f"failed: {failed}")
    for unit in UNITS:
        expect(lab.unit(unit, "UnitFileState") == "enabled", f"{unit} is not enabled")
        restarts = lab.unit(unit, "NRestarts")
        expect(restarts == "0", f"{unit} was started again {restarts} times: {lab.last_words(unit)}")
