"""python -m tools.parts FOLDER: what each part of the tests ran, skipped and how it ended, and whether all is well.

FOLDER is named as the command that ran, test or test-all. It has a JUnit file of each part that ran, and the file
`ended` with a line for each part that began: its name and the status of its pytest. A part that is not there, or ran no
test, is a failure with its reason.
"""

import signal
import sys
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from tabulate import tabulate

_ODD_HOST: Final = {"de": "odd host, first half", "tr": "odd host, second half"}
PARTS: Final = {
    "test": {**_ODD_HOST, "clusters": "real clusters, the core"},
    "test-all": {"demo": "the demo", **_ODD_HOST, "clusters": "real clusters, the rest"},
}
"""The parts of each command, by the name of their JUnit file."""
AGAIN: Final = "once-more-"
"""Before the name of a part whose failures ran once more, alone."""
ENDED: Final = "ended"
_SAID: Final = {
    2: "interrupted", 3: "pytest broke off (internal error)", 4: "pytest refused its arguments", 5: "no test was found",
    124: "its time was over",
}  # fmt: skip
_SIGNALLED: Final = 128


class Part(NamedTuple):
    """What one part did: counts of its JUnit file (None without one), the status of its pytest (None: never ended)."""

    counts: Mapping[str, int] | None
    status: int | None

    @property
    def ran(self) -> int:
        """Tests that ran to a result."""
        return 0 if self.counts is None else self.counts["tests"] - self.counts["skipped"]

    @property
    def failed(self) -> int:
        """Tests that failed, or could not be set up."""
        return 0 if self.counts is None else self.counts["failures"] + self.counts["errors"]


def part_of(folder: Path, name: str, status: int | None) -> Part:
    """Return a part of the folder; a JUnit file that is not whole counts as none."""
    try:
        suites = list(ET.parse(folder / f"{name}.xml").getroot().iter("testsuite"))  # noqa: S314 our own pytest wrote it
        keys = ("tests", "skipped", "failures", "errors")
        return Part({key: sum(int(suite.attrib[key]) for suite in suites) for key in keys}, status)
    except (OSError, ET.ParseError, KeyError, ValueError):
        return Part(None, status)


def statuses(folder: Path) -> dict[str, int]:
    """Return the statuses that tools/run-tests noted, the last one of each part."""
    file = folder / ENDED
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return {name: int(status) for name, _, status in (line.partition(" ") for line in lines)}


def verdict(part: Part, again: Part | None) -> tuple[bool, str]:
    """Return whether a part is well, and how it ended in words."""
    if missing := _missing(part):
        return False, missing
    if part.status == 0:
        return True, "passed"
    if again is not None and again.status == 0 and again.ran:
        return True, f"passed: {again.ran} that failed beside others passed alone"
    return False, "FAILED"


def _missing(part: Part) -> str:
    """Return why a part has no result, "" where it has one."""
    if part.status is None:
        return "DID NOT RUN TO ITS END: nothing says how it ended"
    if part.status > _SIGNALLED:
        name = signal.Signals(part.status - _SIGNALLED).name
        return f"KILLED by {name}" + (" (out of memory?)" if name == "SIGKILL" else "")
    if part.status > 1:
        return f"DID NOT RUN: {_SAID.get(part.status, f'status {part.status}')}"
    if part.counts is None:
        return "DID NOT RUN: it left no results"
    return "" if part.ran else "DID NOT RUN: no test"


def summary(folder: Path) -> tuple[bool, str]:
    """Return whether every part is well, and the table of them."""
    noted = statuses(folder)
    rows, well = [], True
    for name, title in PARTS[folder.name].items():
        part = part_of(folder, name, noted.get(name))
        again = part_of(folder, AGAIN + name, noted[AGAIN + name]) if AGAIN + name in noted else None
        good, said = verdict(part, again)
        well = well and good
        skipped = part.counts["skipped"] if part.counts else 0
        rows.append((title, part.ran, part.failed, skipped, said))
    return well, tabulate(rows, headers=("part of the tests", "ran", "failed", "skipped", "ended"))


def main(arguments: Sequence[str]) -> int:
    """Print the table; 1 where a part is not well."""
    well, text = summary(Path(arguments[0]))
    sys.stdout.write(f"\n{text}\n{'every part passed' if well else 'NOT every part passed'}\n")
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
