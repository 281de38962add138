"""replay: a whole table at once, the vector of every run at its submission and the state after the last event."""

from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpuwaste.predict.context import contexts_of, facts_of
from gpuwaste.predict.events import Events, Known, events_of
from gpuwaste.predict.features import GROUPS, vectors
from gpuwaste.predict.features.base import Group, feature_list
from gpuwaste.predict.keys import Hashes, key_columns
from gpuwaste.predict.recurrences import half
from gpuwaste.predict.rows import ROW
from gpuwaste.predict.snapshot import OpenRun
from gpuwaste.predict.state import MAX_UNJUDGED, HistoryState
from gpuwaste.predict.table import JobTable
from gpuwaste.predict.windows import KeyHistory

_THREADS: Final = 2  # numpy works without the interpreter's lock in the long calls
_CHUNK: Final = 2048  # rows whose windows fit the processor's cache


@dataclass(frozen=True, slots=True)
class Replay:
    """`vectors` float32 [n, F] in the table's order; `state` after the last event of the table."""

    vectors: NDArray[np.float32]
    state: HistoryState


def replay(table: JobTable, state: HistoryState | None = None, groups: tuple[Group, ...] = GROUPS) -> Replay:
    """Tell a state (a copy of the one given, else an empty one) all events of a table, in order.

    Runs that the state has in the system already are not submitted again: only the rest of their events is told. The
    vectors equal those of HistoryState.vector, called before each submission, bit for bit.
    """
    after = HistoryState() if state is None else state.copy()
    events = events_of(table, Known.of(table, after.open))
    columns = key_columns(table)
    with ThreadPoolExecutor(_THREADS) as pool:
        histories = list(pool.map(lambda column: _history(column, events, after), columns))
        result = _vectors(table, histories, groups, pool)
    for history in histories:
        after.keys.put_all(history.rows(history.last, np.empty(len(history.keys), dtype=ROW)))
    _carry_open(table, events, columns, after)
    after.as_of = max(after.as_of, events.as_of)
    after.bound()
    return Replay(result, after)


def _history(column: Hashes, events: Events, state: HistoryState) -> KeyHistory:
    keys, codes = np.unique(column, return_inverse=True)
    prior = state.keys.rows.take(state.keys.find_all(keys))
    return KeyHistory(keys, codes, events, prior)


def _vectors(
    table: JobTable, histories: list[KeyHistory], groups: tuple[Group, ...], pool: Executor
) -> NDArray[np.float32]:
    facts = facts_of(table.name)
    result = np.empty((len(table), len(feature_list(groups))), dtype=np.float32)

    def fill(begin: int) -> None:
        part = slice(begin, begin + _CHUNK)
        rows = np.empty((len(result[part]), len(histories)), dtype=ROW)
        for place, history in enumerate(histories):
            history.rows(history.at_submit.part(part), rows[:, place])
        vectors(contexts_of(table, part, facts, rows), groups, result[part])

    list(pool.map(fill, range(0, len(table), _CHUNK)))
    return result


def _carry_open(table: JobTable, events: Events, columns: list[Hashes], state: HistoryState) -> None:
    """Keep the runs that are still in the system or wait for the ledger; the others leave."""
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
