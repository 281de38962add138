"""A log's waits as rows to learn from and to judge: features, what the queue simulation said, what baselines said."""

from collections.abc import Hashable, Iterable
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuwaste.models.waits.features import Knowledge
from gpuwaste.models.waits.queue_at import Submission, WaitLog, jobs_of_rows, queue_of, submissions
from gpuwaste.plan.when.correction import log_wait
from gpuwaste.plan.when.expectation import QUANTILES, waits_of
from gpuwaste.plan.when.past_runs import PastRuns
from gpuwaste.plan.when.queue import Jobs, Queue

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
LAST: Final = "last wait of the same shape"
REQUEST: Final = "user's request simulated"
ROLLING: Final = (20, 50, 100, 300)  # waits of a partition and size; the best of these is what is compared


class WaitRows(NamedTuple):
    """m submissions whose waits are known, in order: `features` [m, k] as learnt from; seconds elsewhere.

    `simulated` [m, 3] are p10, p50 and p90; `baselines` the same by name.
    """

    submit: Ints
    start: Ints
    features: NDArray[np.float32]
    simulated: Floats
    baselines: dict[str, Floats]

    @property
    def waited(self) -> Floats:
        """Return what each job waited [m]."""
        return (self.start - self.submit).astype(np.float64)


def wait_rows(log: WaitLog, *, draws: int, every: int = 1, ticks: Iterable[object] | None = None) -> WaitRows:
    """Return every k-th submission that started, with what was known then. `ticks` is drawn from once a submission."""
    past, known, tick = PastRuns(), Knowledge(log), iter(ticks or ())
    rows: list[int] = []
    features: list[list[float]] = []
    simulated: list[list[float]] = []
    baselines: dict[str, list[list[float]]] = {}
    for seen in submissions(log, past):
        next(tick, None)
        known.started(seen.started)
        if seen.row % every or log.start[seen.row] < 0:
            continue
        own, request = _simulated(log, seen, past, draws)
        said = {LAST: [_last(known, seen.row)] * 3, REQUEST: [request] * 3, **_rolling(known, seen.row)}
        for name, quantiles in said.items():
            baselines.setdefault(name, []).append(quantiles)
        rows.append(seen.row)
        simulated.append(own)
        hints = (*own, request, *(value for quantiles in said.values() for value in quantiles))
        features.append(known.features(seen) + [log_wait(value) for value in hints])
    return WaitRows(
        log.submit[rows],
        log.start[rows],
        np.array(features, np.float32),
        np.array(simulated, np.float64),
        {name: np.array(found) for name, found in baselines.items()},
    )


def _simulated(log: WaitLog, seen: Submission, past: PastRuns, draws: int) -> tuple[list[float], float]:
    """Return p10, p50 and p90 of the wait, and the wait if every job took its limit; a job that fits no pool: 0."""
    queue = queue_of(log, seen, past)
    asked = jobs_of_rows(log, np.array([seen.row]), past, np.zeros(1, np.int64))
    waits = np.maximum(waits_of(queue, asked, [None], draws, seen.row)[:, 0], 0)
    believed = Queue(queue.now, queue.machine, _to_the_limit(queue.running), _to_the_limit(queue.waiting))
    request = max(int(waits_of(believed, asked, [None], 1, 0)[0, 0]), 0)
    return np.quantile(waits, QUANTILES, method="inverted_cdf").tolist(), float(request)


def _to_the_limit(jobs: Jobs) -> Jobs:
    return jobs._replace(run_s=np.repeat(jobs.limit_s[:, None].astype(np.float64), jobs.run_s.shape[1], axis=1))


def _group(known: Knowledge, row: int, name: str) -> Hashable:
    return next(key for key in known.groups(row) if isinstance(key, tuple) and key[0] == name)


def _last(known: Knowledge, row: int) -> float:
    waits = known.waits.last(_group(known, row, "shape")) or known.waits.last(_group(known, row, "partition"))
    return waits[-1][1] if waits else 0.0


def _rolling(known: Knowledge, row: int) -> dict[str, list[float]]:
    waits = known.waits.last(_group(known, row, "size")) or known.waits.last(_group(known, row, "partition"))
    values = np.array([wait for _, wait in waits]) if waits else np.zeros(1)
    return {
        f"rolling quantile, last {count} of partition and size": np.quantile(values[-count:], QUANTILES).tolist()
        for count in ROLLING
    }
