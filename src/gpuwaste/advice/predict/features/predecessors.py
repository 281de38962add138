"""How the user's last 16 submitted jobs ended, and how those that have not ended are likely to.

A job that has run for long is like those earlier ones that ran at least as long: its odds of failure are
(f + .3) / (c + 1.7) over the failed and completed jobs among the 16 with that run time (all of them for a job that
waits), times the odds of its key over the odds of the user. An ended job has 1 (failed), 0 (completed) or .5 (any other
end) in place of a probability. Means are weighted by how far back a job is among the 16, or by its age.
"""

from collections.abc import Iterator
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpuwaste.advice.predict.feature_context import Context
from gpuwaste.advice.predict.feature_group import Block, Feature, Group, Step, copied
from gpuwaste.core.units import DAY_S
from gpuwaste.jobs.history.history_keys import BY_NAME, EXACT
from gpuwaste.jobs.history.recent_runs import ALIKE, ALIKE_AT, MOMENTS, MOMENTS_AT, RUNS
from gpuwaste.jobs.history.recurrences import FAILED_OF

KEYS: Final = (BY_NAME["user"], *(BY_NAME.get(name, EXACT) for name in ALIKE))
_MEANS: Final = (
    Feature("likely_1", "", "a likely failure rate of {value} among the very last {jobs}, unended ones included"),
    Feature("likely_fast", "", "a likely failure rate of {value} among the newest {jobs}, unended ones included"),
    Feature("likely_slow", "", "a likely failure rate of {value} among the last 16 {jobs}, unended ones included"),
    Feature("likely_day", "", "a likely failure rate of {value} among the last day's {jobs}, unended ones included"),
    Feature("likely_open", "", "a likely failure rate of {value} among the {jobs} that have not ended"),
)
_OTHERS: Final = (
    Feature("open", "", "{value} of the last 16 submitted {jobs} have not ended"),
    Feature("open_age", "s", "of the {jobs} that run now the oldest runs for {value}"),
)
FEATURES: Final = tuple(
    Feature(f"{key.name}_{f.name}", f.unit, f.text.replace("{jobs}", f"jobs {key.text}"))
    for key in KEYS
    for f in (*_MEANS, *_OTHERS)
)
_FIXED: Final = np.stack([base ** np.arange(RUNS) for base in (0.3, 0.75, 0.93)]).astype(np.float32)
_DAY, _OPEN = len(_FIXED), len(_FIXED) + 1  # places in _MEANS
_COUNT, _AGE = len(_MEANS), len(_MEANS) + 1
_DAYS: Final = -1.0 / DAY_S
_JUDGED: Final = np.stack((FAILED_OF == 1.0, FAILED_OF == 0.0), axis=1).astype(np.float32)  # by outcome
_SETTLED: Final = np.nan_to_num(FAILED_OF, nan=0.5).astype(np.float32)
_PRIOR: Final = np.array([0.3, 1.7], dtype=np.float32)  # a prior of two ended jobs with unknown outcome
_ONE, _ZERO = np.float32(1.0), np.float64(0.0)
_SUBMIT, _START, _END = (MOMENTS.index(name) for name in ("submit", "start", "end"))
_KEYS: Final = len(KEYS)


class _Room:
    """The arrays of n requests, float32 except the moments.

    `lines` [n, keys + keys + 16, 16] are over the user's runs, the newest first: for each key the likelihood of its
    runs, 0 for others; for each key 1 for its runs, 0 for others; and for each run 1 for those that ran as long.
    """

    def __init__(self, n: int) -> None:
        self.ago = np.empty((n, len(MOMENTS), RUNS))
        self.happened = np.empty((n, len(MOMENTS), RUNS), dtype=bool)
        self.open = np.empty((n, RUNS), dtype=bool)
        self.ran, self.age = np.empty((n, RUNS)), np.empty((n, RUNS))
        self.lines = np.empty((n, 2 * _KEYS + RUNS, RUNS), dtype=np.float32)
        self.likely, self.alike = self.lines[:, :_KEYS], self.lines[:, _KEYS : 2 * _KEYS]


def steps(context: Context, out: Block) -> Iterator[Step]:
    """Fill the columns [n, keys x 7]."""
    room = _Room(len(context.requests))
    columns = out.reshape(len(out), _KEYS, len(_MEANS) + len(_OTHERS))  # a view: the rows are not moved
    yield from _stages(context, room)
    yield from _likely(context.recent["outcomes"], room)
    yield from _summed(room, columns)


def _stages(context: Context, room: _Room) -> Iterator[Step]:
    """Yield the steps that find the runs like the request, the state of each, and how long it ran or has run."""
    words, ago, ran = context.recent["words"], room.ago, room.ran
    ended = room.happened[:, _END]
    yield copied(ago, words[:, MOMENTS_AT])
    yield partial(np.greater, ago, _ZERO, room.happened)
    yield partial(np.subtract, context.submit[:, None, None], ago, ago)
    yield partial(np.greater, room.happened[:, _SUBMIT], ended, room.open)
    yield partial(np.multiply, ago[:, _END], ended, ago[:, _END])  # a run that has not ended runs until now
    yield partial(np.subtract, ago[:, _START], ago[:, _END], ran)
    yield partial(np.multiply, ran, room.happened[:, _START], ran)
    yield partial(np.multiply, ran, room.open, room.age)
    yield copied(room.alike[:, 0], room.happened[:, _SUBMIT])
    yield partial(np.equal, words[:, ALIKE_AT], context.codes[:, :, None], room.alike[:, 1:])
    yield partial(np.multiply, room.alike[:, 1:], room.alike[:, :1], room.alike[:, 1:])  # a missing run is never alike


def _likely(outcomes: NDArray[np.uint8], room: _Room) -> Iterator[Step]:
    """Yield the steps that compute how likely each run is to fail; counts are exact in any order of addition."""
    n = len(outcomes)
    judged, settled = np.empty((n, RUNS, 2), dtype=np.float32), np.empty((n, 1, RUNS), dtype=np.float32)
    counts, odds = np.empty((n, _KEYS + RUNS, 2), dtype=np.float32), np.empty((n, _KEYS + RUNS), dtype=np.float32)
    likely, rest = room.likely, np.empty((n, _KEYS, RUNS), dtype=np.float32)
    yield partial(_JUDGED.take, outcomes, 0, judged, "clip")
    yield partial(_SETTLED.take, outcomes[:, None], None, settled, "clip")
    yield partial(np.greater_equal, room.ran[:, None], room.ran[:, :, None], room.lines[:, 2 * _KEYS :])
    yield partial(np.matmul, room.lines[:, _KEYS:], judged, counts)
    yield partial(np.add, counts, _PRIOR, counts)
    yield partial(np.divide, counts[..., 0], counts[..., 1], odds)
    yield partial(np.divide, odds[:, 1:_KEYS], odds[:, :1], odds[:, 1:_KEYS])
    yield partial(odds[:, 0].fill, _ONE)
    yield partial(np.multiply, odds[:, :_KEYS, None], odds[:, None, _KEYS:], likely)
    yield partial(np.add, likely, _ONE, rest)
    yield partial(np.divide, likely, rest, likely)
    yield partial(np.copyto, likely, settled, where=room.happened[:, None, _END])
    yield partial(np.multiply, likely, room.alike, likely)


def _summed(room: _Room, columns: Block) -> Iterator[Step]:
    """Yield the steps that take the means over each key's runs (NaN over none), and count the unended ones."""
    n = len(columns)
    weights = np.empty((n, len(_MEANS), RUNS), dtype=np.float32)
    sums = np.empty((n, 2 * _KEYS, len(_MEANS)), dtype=np.float32)
    weights[:, :_DAY] = _FIXED
    days, ages = room.ago[:, _SUBMIT], np.empty((n, _KEYS, RUNS))
    yield partial(np.multiply, days, _DAYS, days)
    yield partial(np.exp, days, weights[:, _DAY], casting="unsafe")
    yield copied(weights[:, _OPEN], room.open)
    yield partial(np.matmul, room.lines[:, : 2 * _KEYS], weights.transpose(0, 2, 1), sums)
    yield partial(np.divide, sums[:, :_KEYS], sums[:, _KEYS:], columns[..., : len(_MEANS)])
    yield copied(columns[..., _COUNT], sums[:, _KEYS:, _OPEN])
    yield partial(np.multiply, room.alike, room.age[:, None], ages)
    yield partial(np.maximum.reduce, ages, 2, None, columns[..., _AGE])


GROUP = Group("predecessors", "", FEATURES, steps, per_key=False)
