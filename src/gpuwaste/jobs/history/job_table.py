"""JobTable: many runs as columns, in the order of submission, and the same table as known at an instant.

Replay, labels and baselines read it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from gpuwaste.core.underuse import UNDER_USE, UnderUse
from gpuwaste.jobs.history.outcome import Outcome, outcome_of
from gpuwaste.jobs.job_event import EndRule
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.submit.job_request import request_of

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
ABSENT: Final = -1  # an unknown instant
# Columns with the same name in a request, or in the ledger's result.
_TEXTS: Final = ("user", "account", "partition", "qos", "name", "gpu_type")
_AMOUNTS: Final = ("nodes", "cpus", "mem_b", "gpus")
_FLAGS: Final = ("is_array", "interactive")
_USES: Final = ("used_ratio", "gpus_active")


@dataclass(frozen=True, slots=True)
class Categories:
    """A text column: `values[codes[i]]` is the text of row i; "" is a value like any other."""

    codes: NDArray[np.int32]
    values: tuple[str, ...]

    @classmethod
    def of(cls, texts: Iterable[str]) -> Self:
        """Encode texts in the order of their first occurrence."""
        numbers: dict[str, int] = {}
        codes = np.fromiter((numbers.setdefault(t, len(numbers)) for t in texts), dtype=np.int32)
        return cls(codes, tuple(numbers))

    def take(self, rows: NDArray[np.intp]) -> Self:
        """Return the requested rows, with the same values."""
        return type(self)(self.codes[rows], self.values)


@dataclass(frozen=True, slots=True)
class GpuEnergy:
    """Energy of each run's own GPUs as measured by agents [n]: `joules`, NaN where unmeasured, over GPU-`seconds`.

    `idle_joules` over `idle_seconds` are of the hours in which a GPU was idle all the time, 0 where there is none.
    `gpu_type` is the type that was allocated to the run, "" where the site names none.
    """

    gpu_type: Categories
    joules: Floats
    seconds: Floats
    idle_joules: Floats
    idle_seconds: Floats

    def take(self, rows: NDArray[np.intp]) -> Self:
        """Return the requested rows, in the order given."""
        amounts = (self.joules, self.seconds, self.idle_joules, self.idle_seconds)
        return type(self)(self.gpu_type.take(rows), *(amount[rows] for amount in amounts))


@dataclass(frozen=True, slots=True)
class JobTable:
    """Runs sorted by (submit, job_id): arrays of n rows each.

    Instants are UTC seconds, ABSENT (-1) where not known; amounts are float64 with NaN for "not known". The request
    columns hold what was known at submission, `start` to `max_rss_b` what was known later. `used_ratio` (mean
    utilization of the allocated GPUs, 0..1, NaN unknown), `gpus_active` (GPUs whose mean reaches the limit of
    `under_use`, at least 1 where any was used), `gpus_used` (GPUs that were ever above 0 %) and `gpu_coverage` (known
    share of the allocation) come from the ledger, and were known at `ledger_at`.
    """

    job_id: Ints
    submit: Ints
    user: Categories
    account: Categories
    partition: Categories
    qos: Categories
    name: Categories
    gpu_type: Categories
    limit_s: Floats
    nodes: Floats
    cpus: Floats
    mem_b: Floats
    gpus: Floats
    is_array: NDArray[np.bool_]
    interactive: NDArray[np.bool_]
    start: Ints
    end: Ints
    run_s: Floats
    alloc_cpus: Floats
    outcome: NDArray[np.uint8]
    max_rss_b: Floats
    used_ratio: Floats
    gpus_active: Floats
    gpu_coverage: Floats
    ledger_at: Ints
    end_rule: EndRule = "accounting"
    under_use: UnderUse = UNDER_USE
    gpus_used: Floats | None = None
    """None where the source lacks it: a log."""
    energy: GpuEnergy | None = None
    """None where it was not requested, or the source lacks it: a log, the history through the hub."""

    def __len__(self) -> int:
        return len(self.submit)

    def take(self, rows: NDArray[np.intp]) -> Self:
        """Return a table of the requested rows, in the order given (ascending keeps the table sorted)."""
        values: dict[str, Any] = {f.name: getattr(self, f.name) for f in fields(self)}
        for name, value in values.items():
            if name not in {"end_rule", "under_use"} and value is not None:
                values[name] = value.take(rows) if isinstance(value, Categories | GpuEnergy) else value[rows]
        return type(self)(**values)

    def by_rule(self, under_use: UnderUse) -> Self:
        """Return the table for another rule of under-use: GPUs counted by another limit become unknown."""
        if under_use.below_pct == self.under_use.below_pct:
            return replace(self, under_use=under_use)
        return replace(self, under_use=under_use, gpus_active=np.full(len(self), np.nan))

    @property
    def wait_known(self) -> bool:
        """Whether starts are real, not assumed to be the submission."""
        return self.end_rule == "accounting"


@dataclass(frozen=True, slots=True)
class GpuUse:
    """The ledger's result for one run's GPUs; see JobTable."""

    used_ratio: float
    gpus_active: int
    coverage: float
    known_at: int
    gpus_used: int | None = None  # from a hub that does not count them


def table_of(
    jobs: Sequence[JobRecord],
    *,
    use: Sequence[GpuUse | None] | None = None,
    end_rule: EndRule = "accounting",
    under_use: UnderUse = UNDER_USE,
) -> JobTable:
    """Return the table of runs in any order; `use`, counted by `under_use`, has an entry for each of `jobs`."""
    pairs = list(zip(jobs, use if use is not None else [None] * len(jobs), strict=True))
    pairs.sort(key=lambda pair: (pair[0].submit, pair[0].job_id, pair[0].start or 0))
    runs = [pair[0] for pair in pairs]
    uses = [pair[1] for pair in pairs]
    asked = [request_of(job) for job in runs]
    columns: dict[str, Any] = {name: Categories.of(getattr(r, name) for r in asked) for name in _TEXTS}
    columns |= {name: _floats(getattr(r, name) for r in asked) for name in _AMOUNTS}
    columns |= {name: np.array([getattr(r, name) for r in asked], dtype=np.bool_) for name in _FLAGS}
    columns |= {name: _floats(None if u is None else getattr(u, name) for u in uses) for name in _USES}
    return JobTable(
        job_id=_ints(j.job_id for j in runs),
        submit=_ints(j.submit for j in runs),
        limit_s=_floats(r.time_limit_s for r in asked),
        start=_ints(ABSENT if j.start is None else j.start for j in runs),
        end=_ints(ABSENT if j.end is None else j.end for j in runs),
        run_s=_floats(j.elapsed_s if j.end is not None else None for j in runs),
        alloc_cpus=_floats(j.cpus for j in runs),
        outcome=np.array([outcome_of(j.state, started=j.start is not None) for j in runs], dtype=np.uint8),
        max_rss_b=_floats(j.max_rss_b for j in runs),
        gpu_coverage=_floats(None if u is None else u.coverage for u in uses),
        ledger_at=_ints(ABSENT if u is None else u.known_at for u in uses),
        gpus_used=_floats(None if u is None else u.gpus_used for u in uses),
        end_rule=end_rule,
        **columns,
        under_use=under_use,
    )


def _ints(values: Iterable[int]) -> Ints:
    return np.fromiter(values, dtype=np.int64)


def _floats(values: Iterable[float | None]) -> Floats:
    return np.fromiter((np.nan if v is None else float(v) for v in values), dtype=np.float64)


def ends_of(table: JobTable) -> Ints:
    """Return when each run ended, UTC seconds [n]: as in replay, not before its submission and start.

    For a run that has not ended the value is meaningless.
    """
    return np.maximum(table.end, np.maximum(table.start, table.submit))


def known_at(table: JobTable, at: int) -> JobTable:
    """Return the runs submitted before `at`, UTC seconds, with the values known before `at`."""
    t = table.take(np.flatnonzero(table.submit < at))
    started = (t.start != ABSENT) & (t.start < at)
    ended = (t.end != ABSENT) & (ends_of(t) < at)
    judged = ended & (t.ledger_at != ABSENT) & (t.ledger_at < at)
    return replace(
        t,
        start=np.where(started, t.start, ABSENT),
        end=np.where(ended, t.end, ABSENT),
        run_s=np.where(ended, t.run_s, np.nan),
        outcome=np.where(ended, t.outcome, Outcome.UNKNOWN).astype(np.uint8),
        max_rss_b=np.where(ended, t.max_rss_b, np.nan),
        used_ratio=np.where(judged, t.used_ratio, np.nan),
        gpus_active=np.where(judged, t.gpus_active, np.nan),
        gpu_coverage=np.where(judged, t.gpu_coverage, np.nan),
        gpus_used=None if t.gpus_used is None else np.where(judged, t.gpus_used, np.nan),
        ledger_at=np.where(judged, t.ledger_at, ABSENT),
    )
