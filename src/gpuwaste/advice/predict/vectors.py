"""The vectors of requests: of new ones from a state, and of every run of a table by replay. One path for both."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpuwaste.advice.predict.feature_context import Context, contexts_of, facts_of
from gpuwaste.advice.predict.feature_group import Group, feature_list
from gpuwaste.advice.predict.features import GROUPS, Plan
from gpuwaste.jobs.history.history_replay import replay
from gpuwaste.jobs.history.history_state import HistoryState
from gpuwaste.jobs.history.job_table import JobTable
from gpuwaste.jobs.history.recent_runs import HistoryRows
from gpuwaste.slurm.submit.job_request import JobRequest

_KEPT: Final = 16  # largest number of requests for which a plan is kept


@dataclass(frozen=True, slots=True)
class ReplayedVectors:
    """`vectors` float32 [n, F] in the table's order; `state` after the last event of the table."""

    vectors: NDArray[np.float32]
    state: HistoryState


class _Own(threading.local):
    """The arrays and plan of each thread, by the number of requests."""

    def __init__(self) -> None:
        self.prepared: dict[int, tuple[Context, Plan]] = {}


_own: Final = _Own()


def vector_of(state: HistoryState, request: JobRequest) -> NDArray[np.float32]:
    """Return the features [F] of a request at its submission, before it is part of the state."""
    result: NDArray[np.float32] = vectors_of(state, (request,))[0]
    return result


def vectors_of(state: HistoryState, requests: Sequence[JobRequest]) -> NDArray[np.float32]:
    """Return the features [n, F] of some requests, each computed without the others: faster than one by one."""
    context, plan = _prepared(len(requests))
    context.take(requests, state.rows_of(requests))
    return plan.run().copy()


def _prepared(count: int) -> tuple[Context, Plan]:
    """Return the thread's own arrays for this many requests and the plan that reads them."""
    found = _own.prepared.get(count)
    if found is None:
        context = Context.room(count)
        found = context, Plan(context)
        if count <= _KEPT:
            _own.prepared[count] = found
    return found


def replay_vectors(
    table: JobTable, state: HistoryState | None = None, groups: tuple[Group, ...] = GROUPS
) -> ReplayedVectors:
    """Return the vector of each run of a table at its submission, and the state after the last event.

    The vectors equal those of `vector_of`, called before each submission, bit for bit.
    """
    facts = facts_of(table.name)
    result = np.empty((len(table), len(feature_list(groups))), dtype=np.float32)

    def fill(part: slice, known: HistoryRows) -> None:
        Plan(contexts_of(table, part, facts, known), groups, result[part]).run()

    return ReplayedVectors(result, replay(table, state, fill))
