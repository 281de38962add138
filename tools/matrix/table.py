"""Results of the matrix: what a column writes, and the one table of all."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from gpuwaste.core.errors import ParseError


@dataclass(frozen=True, slots=True)
class Result:
    """One check on one release; `seconds` is wall time, `reason` why it failed, "" where it did not."""

    check: str
    seconds: float
    reason: str = ""

    @property
    def cell(self) -> str:
        """What the table shows."""
        return f"{'failed' if self.reason else 'ok'} {self.seconds:.1f}"


@dataclass(frozen=True, slots=True)
class Column:
    """All that one release's column gave: its exact version, its checks, the requests that its plugin sent."""

    release: str
    version: str
    results: tuple[Result, ...]
    requests: Mapping[str, Any]

    def save(self, path: Path) -> None:
        """Write it as JSON, whole or not at all."""
        new = path.with_suffix(".new")
        new.write_text(json.dumps(asdict(self), indent=1), encoding="utf-8")
        new.replace(path)

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read what `save` wrote. Raises ParseError."""
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            results = tuple(Result(**row) for row in data["results"])
            return cls(str(data["release"]), str(data["version"]), results, dict(data["requests"]))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ParseError(f"{path}: no results of a column ({error})") from error


def say(line: str) -> None:
    """Print a line at once: columns are processes of their own, and their lines must keep their order."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def failed_column(release: str, reason: str, seconds: float) -> Column:
    """Return the column of a release that could not be run."""
    return Column(release, release, (Result("runs", seconds, reason),), {})


def missing(columns: Sequence[Column], checks: Sequence[str]) -> list[str]:
    """Return a line for each release that lacks results of checks, with their names."""
    found = []
    for column in columns:
        had = {result.check for result in column.results}
        if absent := [check for check in checks if check not in had]:
            found.append(f"{column.release}, not run: {'; '.join(absent)}")
    return found


def good(columns: Sequence[Column], checks: Sequence[str]) -> bool:
    """Tell whether every check was run on every release and none failed."""
    failed = any(result.reason for column in columns for result in column.results)
    return bool(columns) and not failed and not missing(columns, checks)


def render(columns: Sequence[Column], checks: Sequence[str]) -> str:
    """Return the table, checks down and releases across, then a line per failure."""
    names = [*checks, *sorted({r.check for column in columns for r in column.results} - set(checks))]
    names = [name for name in names if name in checks or any(_cell(column, name) != "-" for column in columns)]
    rows = [["check (seconds)", *(column.version for column in columns)]]
    rows += [[name, *(_cell(column, name) for column in columns)] for name in names]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    lines.insert(1, "  ".join("-" * width for width in widths))
    failed = [f"{c.release}, {r.check}: {r.reason}" for c in columns for r in c.results if r.reason]
    return "\n".join([*lines, *failed, *missing(columns, checks)])


def _cell(column: Column, name: str) -> str:
    return next((result.cell for result in column.results if result.check == name), "-")
