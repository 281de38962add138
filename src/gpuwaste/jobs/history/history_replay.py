"""replay: all events of a table at once, with the rows of every run's keys at its submission."""

from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpuwaste.jobs.history.history_keys import EXACT, KEYS, Hashes, key_columns
from gpuwaste.jobs.history.history_snapshot import OpenRun
from gpuwaste.jobs.history.history_state import MAX_UNJUDGED, HistoryState
from gpuwaste.jobs.history.job_table import JobTable
from gpuwaste.jobs.history.key_windows import KeyHistory
from gpuwaste.jobs.history.packed_rows import ROW
from gpuwaste.jobs.history.recent_runs import ALIKE, HistoryRows, RecentHistory
from gpuwaste.jobs.history.recurrences import half
from gpuwaste.jobs.history.table_events import Events, Known, events_of

Visit = Callable[[slice, HistoryRows], None]  # some runs of the table, and the history known at their submission
_THREADS: Final = 2  # numpy releases the interpreter's lock in the long calls
_CHUNK: Final = 2048  # rows whose windows fit into the processor's cache
_NAMES: Final = [key.name for key in KEYS]


def replay(table: JobTable, state: HistoryState | None = None, visit: Visit | None = None) -> HistoryState:
    """Return a state (a copy of the one given, else an empty one) after all events of a table, in order.

    Runs that the state already has in the system are not submitted again: only their later events are applied.
    `visit` receives every run's rows as they were before its submission; it is called from several threads.
    """
    after = HistoryState(under_use=table.under_use) if state is None else state.copy()
    events = events_of(table, Known.of(table, after.open))
    columns = key_columns(table)
    codes = _codes(table, columns)
    with ThreadPoolExecutor(_THREADS) as pool:
        histories = list(pool.map(lambda column: _history(column, events, after), columns))
        recent = _recent(table, events, histories[_NAMES.index("user")], codes, after)
        if visit is not None:
            _visit(histories, recent, codes, visit, pool)
    after.recent.put_all(recent.last())
    for history in histories:
        after.keys.put_all(history.rows(history.last, np.empty(len(history.keys), dtype=ROW)))
    _carry_open(table, events, columns, after)
    after.as_of = max(after.as_of, events.as_of)
    after.bound()
    return after


def _history(column: Hashes, events: Events, state: HistoryState) -> KeyHistory:
    keys, codes = np.unique(column, return_inverse=True)
    prior = state.keys.rows.take(state.keys.find_all(keys))
    return KeyHistory(keys, codes, events, prior)


def _codes(table: JobTable, columns: list[Hashes]) -> NDArray[np.uint32]:
    """Return ALIKE's codes of each row, [n, 3]."""
    found = dict(zip(_NAMES, columns, strict=True)) | {EXACT.name: key_columns(table, (EXACT,))[0]}
    return np.stack([found[name] for name in ALIKE], axis=1).astype(np.uint32)  # the low 32 bits


def _recent(
    table: JobTable, events: Events, user: KeyHistory, codes: NDArray[np.uint32], state: HistoryState
) -> RecentHistory:
    return RecentHistory(table, events, user, codes, state.recent.rows.take(state.recent.find_all(user.keys)))


def _visit(
    histories: list[KeyHistory], recent: RecentHistory, codes: NDArray[np.uint32], visit: Visit, pool: Executor
) -> None:
    count = len(codes)

    def part(begin: int) -> None:
        place = slice(begin, min(begin + _CHUNK, count))
        rows = np.empty((place.stop - begin, len(histories)), dtype=ROW)
        for column, history in enumerate(histories):
            history.rows(history.at_submit.part(place), rows[:, column])
        visit(place, HistoryRows(rows, recent.at_submit(place), codes[place]))

    list(pool.map(part, range(0, count, _CHUNK)))


def _carry_open(table: JobTable, events: Events, columns: list[Hashes], state: HistoryState) -> None:
    """Keep the runs that are still in the system or wait for the ledger; drop the others."""
    first = np.flatnonzero(events.counted | _is_open(table, state))
    waits = ~events.ended | ((table.gpus > 0) & ~events.judged)
    for row in first[~waits[first]] if state.open else ():
        run = (int(table.job_id[row]), int(table.submit[row]))
        state.open.pop(run, None)
        state.unjudged.pop(run, None)
    kept = first[waits[first]]
    kept = kept[np.argsort(np.where(events.ended[kept], table.end[kept], -1), kind="stable")]
    spare = max(int(np.count_nonzero(events.ended[kept])) - MAX_UNJUDGED, 0)
    kept = np.delete(kept, np.flatnonzero(events.ended[kept])[:spare])
    rows = np.column_stack([state.keys.find_all(column[kept]) for column in columns]).tolist()
    for row, places in zip(kept.tolist(), rows, strict=True):
        state.hold(
            (int(table.job_id[row]), int(table.submit[row])),
            OpenRun(
                tuple(places),
                half(table.cpus[row]),
                float(table.limit_s[row]),
                half(table.gpus[row]),
                bool(events.started[row]),
                bool(events.ended[row]),
            ),
        )


def _is_open(table: JobTable, state: HistoryState) -> NDArray[np.bool_]:
    return Known.of(table, state.open).submitted
