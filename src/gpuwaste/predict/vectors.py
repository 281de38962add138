"""The vectors of requests: of new ones from a state, and of every run of a table by replay. One path for both."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from gpuwaste.core.request import JobRequest
from gpuwaste.core.underuse import UnderUse
from gpuwaste.history.replay import replay
from gpuwaste.history.state import HistoryState
from gpuwaste.history.table import JobTable
from gpuwaste.predict.context import contexts_of, contexts_of_requests, facts_of
from gpuwaste.predict.features import GROUPS, vectors
from gpuwaste.predict.features.base import Group, feature_list


class KeyHistories(Protocol):
    """The part of HistoryState that vectors are computed from, and the rule by which it counts the use of GPUs."""

    under_use: UnderUse

    def rows_of(self, requests: Sequence[JobRequest]) -> NDArray[np.void]:
        """Return the rows [n, keys] of the requests' keys."""
        ...


@dataclass(frozen=True, slots=True)
class Replay:
    """`vectors` float32 [n, F] in the table's order; `state` after the last event of the table."""

    vectors: NDArray[np.float32]
    state: HistoryState


def vector_of(state: KeyHistories, request: JobRequest) -> NDArray[np.float32]:
    """Return the features [F] of a request at its submission, before the state knows of it."""
    result: NDArray[np.float32] = vectors_of(state, (request,))[0]
    return result


def vectors_of(state: KeyHistories, requests: Sequence[JobRequest]) -> NDArray[np.float32]:
    """Return the features [n, F] of some requests, none of which knows of the others: quicker than one by one."""
    return vectors(contexts_of_requests(requests, state.rows_of(requests)))


def replay_vectors(table: JobTable, state: HistoryState | None = None, groups: tuple[Group, ...] = GROUPS) -> Replay:
    """Return the vector of each run of a table at its submission, and the state after the last event.

    The vectors equal those of `vector_of`, asked before each submission, bit for bit.
    """
    facts = facts_of(table.name)
    result = np.empty((len(table), len(feature_list(groups))), dtype=np.float32)

    def fill(part: slice, rows: NDArray[np.void]) -> None:
        vectors(contexts_of(table, part, facts, rows), groups, result[part])

    return Replay(result, replay(table, state, fill))
