"""make figures-tests: what the last `make test` and `make test-all` took, from the files they left in build/tests.

Writes the slowest 30 tests and the sums into docs/figures.md, and into tests/durations.json how long each long file
takes: tests/conftest.py begins the longest first.
"""

import json
import re
import sys
import xml.etree.ElementTree as ET
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from tools.parts import PARTS

ROOT: Final = Path(__file__).parents[1]
RUNS: Final = ROOT / "build" / "tests"
PAGE: Final = ROOT / "docs" / "figures.md"
LENGTHS: Final = ROOT / "tests" / "durations.json"
SLOWEST: Final = 30
LONG_S: Final = 10  # of a file: the order of shorter ones makes no difference
_SECTION: Final = re.compile(r"(?<=\n### The slowest tests\n\n).*?(?=\n## |\Z)", re.DOTALL)


class Case(NamedTuple):
    """A test, and its seconds with those of its fixtures."""

    file: str
    name: str
    seconds: float


def cases_of(report: Path) -> list[Case]:
    """Return the tests of a JUnit file of pytest's."""
    found = ET.parse(report).getroot().iter("testcase")  # noqa: S314 our own pytest wrote it
    return [
        Case(f"{case.attrib['classname'].replace('.', '/')}.py", case.attrib["name"], float(case.attrib["time"]))
        for case in found
    ]


def lengths_of(cases: Iterable[Case]) -> dict[str, int]:
    """Return the whole seconds of each long file, the longest first."""
    sums: defaultdict[str, float] = defaultdict(float)
    for case in cases:
        sums[case.file] += case.seconds
    return {file: round(sums[file]) for file in sorted(sums, key=lambda file: -sums[file]) if sums[file] >= LONG_S}


def table_of(runs: dict[str, Sequence[Case]]) -> str:
    """Return the section of the page: the sums of each run of pytest, and the slowest tests of all."""
    lines = ["| run of pytest | tests | s in all workers |", "|---|---:|---:|"]
    lines += [
        f"| {name} | {len(cases):,} | {sum(case.seconds for case in cases):,.0f} |" for name, cases in runs.items()
    ]
    every = sorted((case for cases in runs.values() for case in cases), key=lambda case: -case.seconds)
    lines += ["", "| s | test |", "|---:|---|"]
    lines += [
        f"| {case.seconds:.1f} | {case.file}::{case.name.replace('|', '&#124;')[:100]} |" for case in every[:SLOWEST]
    ]
    return "\n".join(lines) + "\n"


def with_table(page: str, table: str) -> str:
    """Return the page with the table below its heading."""
    return _SECTION.sub(lambda _: table, page)


def main() -> None:
    """Read the runs; write page and lengths."""
    runs: dict[str, Sequence[Case]] = {
        f"{command} {report.stem}": cases_of(report)
        for command in PARTS
        for report in sorted((RUNS / command).glob("*.xml"))
    }
    if missing := [command for command in PARTS if not (RUNS / command).is_dir()]:
        sys.exit(f"{RUNS}: no run of make {' or make '.join(missing)}")
    lengths = lengths_of(case for cases in runs.values() for case in cases)
    LENGTHS.write_text(json.dumps(lengths, indent=2) + "\n", encoding="utf-8")
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8"), table_of(runs)), encoding="utf-8")


if __name__ == "__main__":
    main()
