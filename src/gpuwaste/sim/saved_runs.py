"""The runs of a simulation as one file of arrays, so that two of them can be compared job by job later."""

import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpuwaste.core.errors import ParseError
from gpuwaste.jobs.history.array_file import read_arrays
from gpuwaste.jobs.history.job_table import Categories
from gpuwaste.sim.difference import Labels, Run
from gpuwaste.sim.trace import Ints, Trace

MAX_B: Final = 1 << 30
_LABELS: Final = ("user", "account", "partition")
_FIELDS: Final = ("submit", "run_s", "limit_s", "procs", "row")


@dataclass(frozen=True, slots=True)
class KeptLabels:
    """Users, accounts and partitions of the jobs."""

    user: Categories
    account: Categories
    partition: Categories


@dataclass(frozen=True, slots=True)
class SavedRuns:
    """Runs by name, first the base's; `job_id` [n] and `labels` are by `trace.row`."""

    job_id: Ints
    labels: KeptLabels
    runs: Mapping[str, Run]


def packed(job_id: Ints, labels: Labels, runs: Mapping[str, Run]) -> bytes:
    """Return the file of runs; rows of the table that no run has are left out."""
    base = next(iter(runs.values())).trace
    arrays: dict[str, NDArray[np.generic]] = {"job_id": job_id[base.row], "names": np.array(list(runs))}
    for name in _LABELS:
        column: Categories = getattr(labels, name)
        arrays[f"{name}.codes"] = column.codes[base.row]
        arrays[f"{name}.values"] = np.array(column.values)
    for number, run in enumerate(runs.values()):
        for field in _FIELDS:
            arrays[f"{number}.{field}"] = getattr(run.trace, field)
        arrays[f"{number}.row"] = np.searchsorted(base.row, run.trace.row)
        arrays[f"{number}.start"] = run.start
        arrays[f"{number}.processors"] = np.array([run.processors])
    stream = io.BytesIO()
    np.savez_compressed(stream, allow_pickle=False, **arrays)
    return stream.getvalue()


def unpacked(data: bytes, what: str) -> SavedRuns:
    """Read a file of runs; `what` names it in errors. Raises ParseError."""
    try:
        return _runs(read_arrays(data, MAX_B))
    except (ParseError, ValueError, KeyError, IndexError, TypeError) as error:
        raise ParseError(f"{what}: not the runs of a simulation ({str(error)[:200]}): simulate again") from error


def _runs(found: Mapping[str, NDArray[np.generic]]) -> SavedRuns:
    job_id = _whole(found["job_id"])
    runs = {str(name): _run(found, number, len(job_id)) for number, name in enumerate(found["names"])}
    if not runs:
        raise ValueError("it has no run")
    labels = [Categories(_codes(found, name, len(job_id)), _texts(found, name)) for name in _LABELS]
    return SavedRuns(job_id, KeptLabels(*labels), runs)


def _run(found: Mapping[str, NDArray[np.generic]], number: int, jobs: int) -> Run:
    columns = {field: _whole(found[f"{number}.{field}"]) for field in (*_FIELDS, "start")}
    row = columns["row"]
    if not len(row) or len({len(column) for column in columns.values()}) > 1:
        raise ValueError("columns of different lengths")
    if row.min() < 0 or row.max() >= jobs or np.any(np.diff(row) <= 0) or np.any(np.diff(columns["submit"]) < 0):
        raise ValueError("jobs out of order")
    if min(int(columns[field].min()) for field in ("run_s", "procs")) < 0:
        raise ValueError("a negative size")
    unknown = np.full(len(row), -1, dtype=np.int64)
    trace = Trace(**{f: columns[f] for f in _FIELDS}, user=unknown, waited_s=unknown)
    return Run(trace, columns["start"], max(1, int(_whole(found[f"{number}.processors"])[0])))


def _whole(values: NDArray[np.generic]) -> Ints:
    if values.ndim != 1 or values.dtype.kind != "i":
        raise ValueError("a column is not of whole numbers")
    return values.astype(np.int64)


def _texts(found: Mapping[str, NDArray[np.generic]], name: str) -> tuple[str, ...]:
    return tuple(str(value)[:255] for value in found[f"{name}.values"])


def _codes(found: Mapping[str, NDArray[np.generic]], name: str, jobs: int) -> NDArray[np.int32]:
    codes = _whole(found[f"{name}.codes"]).astype(np.int32)
    if len(codes) != jobs or (jobs and not 0 <= codes.min() <= codes.max() < len(found[f"{name}.values"])):
        raise ValueError(f"the column {name} does not fit")
    return codes


def same_jobs(left: SavedRuns, right: SavedRuns, first: Run, second: Run) -> tuple[Run, Run]:
    """Return a run of each with one numbering of jobs: a job is its id and its submission, rows are those of `left`.

    A job that only `right` has gets a row after those of `left`.
    """
    keys = [_keys(kept, run) for kept, run in ((left, first), (right, second))]
    place = dict(zip(keys[0], first.trace.row.tolist(), strict=True))
    rows = np.array([place.get(key, len(left.job_id) + n) for n, key in enumerate(keys[1])], dtype=np.int64)
    trace = second.trace
    moved = Trace(trace.submit, trace.run_s, trace.limit_s, trace.procs, trace.user, trace.waited_s, rows)
    return first, Run(moved, second.start, second.processors)


def _keys(kept: SavedRuns, run: Run) -> list[tuple[int, int]]:
    return list(zip(kept.job_id[run.trace.row].tolist(), run.trace.submit.tolist(), strict=True))
