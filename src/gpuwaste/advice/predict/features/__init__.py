"""The features, a file for each group: the same steps from a context to vectors, for one job and for many.

May import the context of a prediction, and history. A new group is a `Group` in a file of its subject, and its name in
GROUPS.
"""

import hashlib
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpuwaste.advice.predict.feature_context import Context
from gpuwaste.advice.predict.feature_group import Feature, Group, Step, feature_list
from gpuwaste.advice.predict.features import ended_jobs, predecessors, queue_state, request_features, used_resources
from gpuwaste.jobs.history.history_keys import KEYS

FEATURE_VERSION: Final = 3  # of the features' meaning: raise it when a formula, or what history remembers, changes
GROUPS: Final[tuple[Group, ...]] = (
    request_features.REQUEST,
    request_features.SCRIPT,
    predecessors.GROUP,
    ended_jobs.OUTCOMES,
    ended_jobs.DURATIONS,
    queue_state.GROUP,
    used_resources.MEMORY,
    used_resources.GPU,
)
FEATURES: Final[tuple[Feature, ...]] = feature_list(GROUPS)


@cache
def feature_hash() -> str:
    """Return the sha256 in hex over version and names: bundles with another one are rejected."""
    return hashlib.sha256("\n".join((str(FEATURE_VERSION), *(f.name for f in FEATURES))).encode()).hexdigest()


def _places(groups: tuple[Group, ...]) -> tuple[int, int, list[tuple[Group, slice]]]:
    """Return the number of columns of the request, those of one key, and where each group writes."""
    ends, places = [0, 0], []
    for group in groups:
        begin = ends[group.per_key]
        ends[group.per_key] += len(group.features)
        places.append((group, slice(begin, ends[group.per_key])))
    return ends[False], ends[True], places


_OURS: Final = _places(GROUPS)


class Plan:
    """How a context's arrays become its vectors [n, F]: the steps of all groups, made once."""

    def __init__(
        self, context: Context, groups: tuple[Group, ...] = GROUPS, out: NDArray[np.float32] | None = None
    ) -> None:
        """Write into `out` if it is given."""
        own, keyed, places = _OURS if groups is GROUPS else _places(groups)
        count = len(context.requests)
        self._result = np.empty((count, own + len(KEYS) * keyed), dtype=np.float32) if out is None else out
        self._infinite = np.empty(self._result.shape, dtype=bool)
        blocks = self._result[:, own:].reshape(count, len(KEYS), keyed)  # a view: the rows are not moved
        self._steps: list[Step] = []
        for group, place in places:
            self._steps += group.steps(context, blocks[..., place] if group.per_key else self._result[:, place])

    def run(self) -> NDArray[np.float32]:
        """Return the vectors of the arrays' current content; unknown is NaN, and nothing is infinite."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            for step in self._steps:
                step()
        np.putmask(self._result, np.isinf(self._result, self._infinite), np.nan)
        return self._result
