"""The directory of a sweep: a JSON file for each case that has ended, and all of them as one Parquet file.

A case that failed has its error there instead of rows, and is tried again by the next sweep into the same directory.
"""

import json
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import duckdb

from gpuwaste.core.errors import GpuwasteError, StoreError
from gpuwaste.core.files import write_whole
from gpuwaste.sim.sweep_study import EXPERIMENTS, SweepCase, SweepStudy
from gpuwaste.store.duckdb_connection import connect

PARQUET: Final = "results.parquet"
_LONGEST_ERROR: Final = 2000


@dataclass(frozen=True, slots=True)
class SweepFolder:
    """The directory of one sweep."""

    path: Path

    def make(self) -> None:
        """Make the directory. Raises StoreError."""
        try:
            (self.path / "cases").mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"{self.path}: cannot be created: {error.strerror}") from error

    def file_of(self, case: SweepCase) -> Path:
        """Return the file of a case."""
        return self.path / "cases" / f"{case.id}.json"

    def result_of(self, case: SweepCase) -> dict[str, Any] | None:
        """Return the result of a case; None where it has not ended, or where its file is damaged."""
        try:
            found = json.loads(self.file_of(case).read_bytes())
        except (OSError, ValueError, RecursionError):
            return None
        return found if isinstance(found, dict) and ("error" in found or isinstance(found.get("rows"), list)) else None

    def left(self, cases: Iterable[SweepCase]) -> list[SweepCase]:
        """Return the cases that have no rows yet, those that failed included."""
        return [case for case in cases if "rows" not in (self.result_of(case) or {})]

    def keep(self, case: SweepCase, **found: Any) -> None:
        """Keep `rows` and `seconds`, or an `error`. Raises StoreError."""
        kept = {"experiment": case.experiment, "values": dict(case.values), "seed": case.seed, **found}
        try:
            write_whole(self.file_of(case), json.dumps(kept, default=str).encode())
        except OSError as error:
            raise StoreError(f"{self.file_of(case)}: cannot be written: {error.strerror}") from error


def run_case(case: SweepCase, folder: SweepFolder) -> str:
    """Run one case and keep its result; returns its error, "" for none. Raises only StoreError."""
    begin = time.monotonic()
    try:
        rows = EXPERIMENTS[case.experiment].rows(case.values, case.seed, case.folder)
    except GpuwasteError as error:
        return _failed(case, folder, str(error))
    except Exception as error:  # noqa: BLE001 a failing case does not end the others, whatever it raises
        return _failed(case, folder, f"{type(error).__name__}: {error}")
    folder.keep(case, rows=rows, seconds=round(time.monotonic() - begin, 3))
    return ""


def run_cases(cases: Sequence[SweepCase], folder: SweepFolder) -> int:
    """Run cases one after the other, as one task of a job array does; returns how many failed."""
    return sum(bool(run_case(case, folder)) for case in cases)


def _failed(case: SweepCase, folder: SweepFolder, error: str) -> str:
    folder.keep(case, error=error[:_LONGEST_ERROR])
    return error[:_LONGEST_ERROR]


def collect(study: SweepStudy, folder: SweepFolder) -> int:
    """Write the rows of all cases that have ended as Parquet; returns how many rows. Raises StoreError.

    A row has the case's id and seed, the parameters, `seconds`, and the columns of the experiment.
    """
    count = 0
    try:
        with tempfile.NamedTemporaryFile("w", dir=folder.path, suffix=".jsonl", encoding="utf-8") as lines:
            for case in study.cases:
                found = folder.result_of(case) or {}
                for row in found.get("rows", ()):
                    lines.write(json.dumps(_row(case, found, row)) + "\n")
                    count += 1
            lines.flush()
            if count:
                _to_parquet(Path(lines.name), folder.path / PARQUET)
    except (OSError, duckdb.Error) as error:
        raise StoreError(f"{folder.path / PARQUET}: cannot be written: {error}") from error
    return count


def _row(case: SweepCase, found: Mapping[str, Any], row: Mapping[str, Any]) -> dict[str, Any]:
    values = {
        key: " ".join(map(str, value)) if isinstance(value, list) else value for key, value in case.values.items()
    }
    return {"case": case.id, "seed": case.seed, "seconds": found.get("seconds"), **values, **row}


def _to_parquet(lines: Path, target: Path) -> None:
    temporary = target.with_suffix(".new")
    with connect() as db:
        source, into = (str(path).replace("'", "''") for path in (lines, temporary))
        read = f"read_json('{source}', format='newline_delimited', sample_size=-1)"
        db.execute(f"copy (select * from {read}) to '{into}' (format parquet, compression zstd)")  # noqa: S608 paths of ours, quoted
    temporary.replace(target)


def summary(study: SweepStudy, folder: SweepFolder) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Return the results of each combination over its seeds: headers, and rows of parameters, counts and mean measures.

    Raises StoreError.
    """
    measures = EXPERIMENTS[study.experiment].MEASURES
    path = str(folder.path / PARQUET).replace("'", "''")
    try:
        with connect() as db:
            relation = db.from_parquet(path)
            known = relation.columns
            by = [name for name in (*study.varied, "scheduler") if name in known]
            shown = [name for name in measures if name in known]
            means = ", ".join(f'avg("{name}")' for name in shown)
            keys = ", ".join(f'"{name}"' for name in by)
            grouped = relation.aggregate(", ".join(filter(None, [keys, "count(*)", means])), keys).order(keys or "1")
            return [*by, "n", *shown], grouped.fetchall()
    except duckdb.Error as error:
        raise StoreError(f"{folder.path / PARQUET}: cannot be read: {error}") from error
