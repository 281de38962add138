"""What a model would have expected of each job's run time when it was submitted: for simulations that plan with it.

The history is told event by event as in a replay of policies. A model is asked only about jobs that were submitted
after the last one it learnt from.
"""

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpuwaste.advice.predict.bundle import Bundle
from gpuwaste.advice.predict.corrections import BundleCorrections, corrections_of
from gpuwaste.advice.predict.predictor import Predictor
from gpuwaste.jobs.history.follow import Follower
from gpuwaste.jobs.history.from_store import TableSnapshot
from gpuwaste.jobs.history.known_at import known_at
from gpuwaste.jobs.history.replay import replay
from gpuwaste.jobs.history.requests import request_of
from gpuwaste.jobs.history.table import JobTable
from gpuwaste.jobs.job_event import HistoryEvent
from gpuwaste.models.replay_events import events_of

UNKNOWN: Final = -1
_TARGET: Final = frozenset({"walltime"})
_CLUSTER: Final = "replay"
_TOLD_EVERY: Final = 1000  # submissions between two calls of progress


def expected_walltimes(
    table: JobTable,
    bundle: Bundle,
    end: int,
    quantile: str = "0.5",
    progress: Callable[[int], None] = lambda _: None,
) -> NDArray[np.int64]:
    """Return the quantile of each row's run time [n], seconds; UNKNOWN where the model does not speak of a job.

    Rows submitted from `end` on, UTC seconds, are not asked about. Raises ModelError.
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
