"""A table of runs replayed event by event, in the order of time, and the run times that a model expects meanwhile.

Expected run times are for simulations that plan with them. A model predicts only jobs that were submitted after the
last one it learnt from.
"""

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuwaste.advice.predict.bundle import Bundle
from gpuwaste.advice.predict.corrections import BundleCorrections, corrections_of
from gpuwaste.advice.predict.predictor import Predictor
from gpuwaste.jobs.history.from_store import TableSnapshot
from gpuwaste.jobs.history.history_follower import Follower
from gpuwaste.jobs.history.history_replay import replay
from gpuwaste.jobs.history.job_table import ABSENT, Floats, JobTable, known_at
from gpuwaste.jobs.history.outcome import Outcome, state_of
from gpuwaste.jobs.job_event import HistoryEvent, HistoryEventKind, RunUse
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.submit.job_request import request_of

# In an equal second ends are first; a run's own events in the second of its submission are after the submission.
_ENDED, _LEDGER, _STARTED, _SUBMITTED = 0, 1, 2, 3
_OWN_SECOND: Final = {_STARTED: 4, _ENDED: 5, _LEDGER: 6}
_KINDS: Final[dict[int, HistoryEventKind]] = {0: "ended", 1: "ledger", 2: "started", 3: "submitted"}
UNKNOWN: Final = -1
_TARGET: Final = frozenset({"walltime"})
_CLUSTER: Final = "replay"
_TOLD_EVERY: Final = 1000  # submissions between two calls of progress


class ReplayedEvent(NamedTuple):
    """One event: the table's row, what happened, when (UTC seconds), and the run."""

    row: int
    kind: HistoryEventKind
    at: int
    job: JobRecord
    use: RunUse | None


def events_of(table: JobTable, start: int, end: int, cluster: str) -> Iterator[ReplayedEvent]:
    """Yield the events from `start` up to the last submission before `end`."""
    runs = _RecordsByRow(table, cluster)
    for at, kind, row in _ordered(table, start, end):
        yield ReplayedEvent(row, _KINDS[kind], at, runs.job(row), runs.use(row) if kind == _LEDGER else None)
        if kind in {_ENDED, _LEDGER}:
            runs.forget(row)


def _ordered(table: JobTable, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yield (at, kind, row) in the order of time."""
    judged = np.where(np.isfinite(table.used_ratio) & (table.end != ABSENT), table.ledger_at, ABSENT)
    instants = {
        _SUBMITTED: table.submit,
        _STARTED: table.start,
        _ENDED: table.end,
        _LEDGER: np.where(judged != ABSENT, np.maximum(judged, table.end), ABSENT),
    }
    at, rank, kinds, rows = [], [], [], []
    for kind, column in instants.items():
        found = np.flatnonzero((column >= start) & (column < end) & (table.submit < end))
        own_second = column[found] <= table.submit[found]
        at.append(np.maximum(column[found], table.submit[found]))
        rank.append(np.where(own_second, _OWN_SECOND.get(kind, kind), kind))
        kinds.append(np.full(len(found), kind))
        rows.append(found)
    order = np.lexsort((np.concatenate(rows), np.concatenate(rank), np.concatenate(at)))
    columns = [np.concatenate(part)[order].tolist() for part in (at, kinds, rows)]
    yield from zip(*columns, strict=True)


class _RecordsByRow:
    """The table's rows as records, kept while they have further events."""

    def __init__(self, table: JobTable, cluster: str) -> None:
        self._table, self._cluster = table, cluster
        self._kept: dict[int, JobRecord] = {}

    def job(self, row: int) -> JobRecord:
        found = self._kept.get(row)
        if found is None:
            found = self._kept[row] = self._record(row)
        return found

    def use(self, row: int) -> RunUse:
        t = self._table
        return RunUse(float(t.used_ratio[row]), int(t.gpus_active[row]), float(t.gpu_coverage[row]))

    def forget(self, row: int) -> None:
        self._kept.pop(row, None)

    def _record(self, row: int) -> JobRecord:
        t = self._table
        texts = {n: getattr(t, n).values[getattr(t, n).codes[row]] for n in ("user", "account", "partition", "qos")}
        job_id = int(t.job_id[row])
        return JobRecord(
            self._cluster,
            job_id,
            int(t.submit[row]),
            array_job_id=job_id if t.is_array[row] else None,
            name=t.name.values[t.name.codes[row]],
            **texts,
            time_limit_s=_whole(t.limit_s, row),
            req_tres=_req_tres(t, row),
            interactive=bool(t.interactive[row]),
            start=_instant(int(t.start[row])),
            gpus=_whole(t.gpus, row) or 0,
            end=_instant(int(t.end[row])),
            elapsed_s=_whole(t.run_s, row),
            state=state_of(Outcome(int(t.outcome[row]))),
            max_rss_b=_whole(t.max_rss_b, row),
        )


def _req_tres(table: JobTable, row: int) -> str:
    """Return ReqTRES from the table's columns: it gives the same request again."""
    parts = [
        f"{name}={amount}{unit}"
        for name, amount, unit in (
            ("cpu", _whole(table.cpus, row), ""),
            ("node", _whole(table.nodes, row), ""),
            ("gres/gpu", _whole(table.gpus, row) or None, ""),
        )
        if amount is not None
    ]
    if (memory := _whole(table.mem_b, row)) is not None:
        parts.append(f"mem={memory / 1024:.4f}K")
    kind = table.gpu_type.values[table.gpu_type.codes[row]]
    if kind and "," not in kind and table.gpus[row] > 0:
        parts.append(f"gres/gpu:{kind}={int(table.gpus[row])}")
    return ",".join(parts)


def _whole(column: Floats, row: int) -> int | None:
    value = float(column[row])
    return None if value != value else int(value)  # noqa: PLR0124 NaN


def _instant(at: int) -> int | None:
    return None if at == ABSENT else at


def expected_walltimes(
    table: JobTable,
    bundle: Bundle,
    end: int,
    quantile: str = "0.5",
    progress: Callable[[int], None] = lambda _: None,
) -> NDArray[np.int64]:
    """Return the quantile of each row's run time [n], seconds; UNKNOWN where the model has no prediction.

    Rows submitted from `end` on, UTC seconds, are not predicted. Raises ModelError.
    """
    start = bundle.manifest.window[1] + 1
    found = np.full(len(table), UNKNOWN, dtype=np.int64)
    if start >= end:
        return found
    before = known_at(table, start)
    follower = Follower(replay(before), _CLUSTER)
    follower.boot(TableSnapshot(before, 0))
    rolling = corrections_of(bundle)
    follower.correct_by(BundleCorrections(bundle, rolling), bundle.hash)
    predictor = Predictor(bundle, follower.state, rolling, follower.recall)
    told = 0
    for number, event in enumerate(events_of(table, start, end, _CLUSTER), 1):
        if event.kind == "submitted":
            request = request_of(event.job)
            (vector,) = predictor.vectors([request])
            for said in predictor.scored(request, vector, _TARGET):
                found[event.row] = max(1, round(said.quantiles.get(quantile, UNKNOWN)))
            told += 1
            if told % _TOLD_EVERY == 0:
                progress(_TOLD_EVERY)
        follower.apply([HistoryEvent(number, event.kind, event.job.run_key, event.at, event.job, event.use)])
    return found
