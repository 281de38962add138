"""Runs parts of the product on releases, and keeps what came of each: docs/releases-measured.json."""

import datetime as dt
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

from gpuwaste.core.errors import GpuwasteError, ParseError
from tools.matrix import trees
from tools.matrix.node import namespace
from tools.matrix.parts import TURN, TURN_ALONE, Part
from tools.matrix.releases import RELEASES, Release
from tools.matrix.table import say
from tools.once_more import may_run_again

REPOSITORY: Final = Path(__file__).resolve().parents[2]
MEASURED: Final = REPOSITORY / "docs" / "releases-measured.json"
_BUILD: Final = REPOSITORY / "build" / "matrix"
_WHOLE_RUNS: Final = frozenset({0, 1})
"""Exit status of a pytest that ran all tests."""
_REASON: Final = 200
"""Longest reason of a failed test, characters."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One part on one release: how many tests passed, the others by test with their reason, seconds of wall time."""

    slurm: str
    day: str
    seconds: int
    passed: int
    failed: Mapping[str, str]
    skipped: Mapping[str, str]

    @property
    def good(self) -> bool:
        """Whether something was tested and nothing failed."""
        return self.passed > 0 and not self.failed

    @property
    def text(self) -> str:
        """What a table shows."""
        if self.failed:
            return f"✘ {len(self.failed)} of {len(self.failed) + self.passed} failed"
        if not self.passed:
            return "not tested"
        return f"✔ {self.passed}" + (f" ({len(self.skipped)} skipped)" if self.skipped else "")


def run_part(part: Part, chosen: Release, folder: Path) -> Cell:
    """Run a part's tests on a release, whose tree must be there; what they print goes to this process's output."""
    _BUILD.mkdir(parents=True, exist_ok=True)
    report = _BUILD / f"{chosen.name}.{part.name.replace(' ', '-')}.xml"
    report.unlink(missing_ok=True)
    pytest = [sys.executable, "-m", "pytest", "-q", "-rfs", "--timeout", "900", "--junitxml", str(report)]
    pytest += ["-n", str(part.workers), "--dist", "loadfile"] if part.workers > 1 else []
    pytest += part.selections(chosen.name)
    say(f"{chosen.name}, {part.name}: {part.shows}")
    began = time.monotonic()
    view = [sys.executable, "-m", "tools.matrix.view", chosen.name, str(folder), *pytest]
    code = subprocess.run(namespace(view), cwd=REPOSITORY, env=_environment(folder), check=False).returncode
    if code not in _WHOLE_RUNS:
        raise GpuwasteError(f"matrix: {part.name}: pytest exited {code}: nothing is recorded")
    version = trees.version_of(trees.tree_of(chosen, folder))
    cell = read_report(report, version, round(time.monotonic() - began))
    say(f"{chosen.name}, {part.name}: {cell.text}, {cell.seconds} s")
    return cell


def run_turn(chosen: Release, folder: Path) -> Cell:
    """Run the turn. Where a few of its tests failed beside others, they run once more alone (docs/decisions/0028)."""
    alone = run_part(TURN_ALONE, chosen, folder)
    cell = _both(run_part(TURN, chosen, folder), alone)
    if not may_run_again(list(cell.failed), ["tests/"]):
        return cell
    say("failed beside other clusters, once more alone")
    again = run_part(replace(TURN, tests=tuple(cell.failed), workers=1), chosen, folder)
    return _both(replace(cell, failed={}), again)


def _both(cell: Cell, other: Cell) -> Cell:
    return replace(
        cell,
        seconds=cell.seconds + other.seconds,
        passed=cell.passed + other.passed,
        failed={**cell.failed, **other.failed},
        skipped={**cell.skipped, **other.skipped},
    )


def read_report(report: Path, version: str, seconds: int) -> Cell:
    """Read pytest's JUnit file. Raises ParseError where there is none."""
    passed, failed, skipped = 0, {}, {}
    try:
        cases = list(ET.parse(report).iter("testcase"))  # noqa: S314
    except (OSError, ET.ParseError) as error:
        raise ParseError(f"{report}: no report of pytest ({error})") from error
    for case in cases:
        name = f"{case.get('classname', '').replace('.', '/')}.py::{case.get('name')}"
        found = {kind: case.find(kind) for kind in ("failure", "error", "skipped")}
        bad = next((found[kind] for kind in ("failure", "error") if found[kind] is not None), None)
        if bad is not None:
            failed[name] = _reason(bad)
        elif (skip := found["skipped"]) is not None:
            skipped[name] = _reason(skip)
        else:
            passed += 1
    return Cell(version, dt.datetime.now(dt.UTC).date().isoformat(), seconds, passed, failed, skipped)


def record(path: Path, chosen: Release, part: Part, cell: Cell) -> None:
    """Put a cell into the file in place of the one that was there; all others stay."""
    cells = read_measured(path)
    cells[chosen.name, part.name] = cell
    found: dict[str, dict[str, object]] = {}
    for (release, name), one in sorted(cells.items()):
        found.setdefault(release, {})[name] = asdict(one)
    new = path.with_suffix(".new")
    new.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    new.replace(path)


def read_measured(path: Path = MEASURED) -> dict[tuple[str, str], Cell]:
    """Return the cells by release and part, none without a file. Raises ParseError."""
    if not path.exists():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return {(release, name): Cell(**cell) for release, parts in found.items() for name, cell in parts.items()}
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise ParseError(f"{path}: no results of parts ({error})") from error


def turn_of(day: dt.date) -> Release:
    """Return which newer release has its turn on a day."""
    newer = [item for item in RELEASES if item.suite]
    if not newer:
        raise GpuwasteError("matrix: every release is the host's own")
    return newer[day.toordinal() % len(newer)]


def _environment(folder: Path) -> dict[str, str]:
    defaults = {"GPUWASTE_TEST_PATIENCE": "4", "GPUWASTE_SKIPS": str(REPOSITORY / ".ci" / "skips")}
    return {**defaults, **os.environ, "GPUWASTE_TREES": str(folder)}


def _reason(element: ET.Element) -> str:
    lines = (element.get("message") or element.text or "").strip().splitlines()
    return lines[0][:_REASON] if lines else "failed"
