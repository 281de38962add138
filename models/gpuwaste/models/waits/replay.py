"""A log's waits as rows to learn from and to judge: features, what the queue simulation said, what baselines said."""

from collections.abc import Iterable
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuwaste.models.waits.queue_at import WaitLog, instant_of, submissions
from gpuwaste.plan.waits.features import ROLLING, last_of_shape, rolling, vector
from gpuwaste.plan.waits.knowledge import Knowledge
from gpuwaste.plan.waits.simulated import simulated

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
LAST: Final = "last wait of the same shape"
REQUEST: Final = "user's request simulated"
ROLLED: Final = {count: f"rolling quantile, last {count} of partition and size" for count in ROLLING}


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
    known, tick = Knowledge(), iter(ticks or ())
    rows: list[int] = []
    features: list[list[float]] = []
    played: list[list[float]] = []
    baselines: dict[str, list[list[float]]] = {}
    for seen in submissions(log, known):
        next(tick, None)
        if seen.row % every or log.jobs.start[seen.row] < 0:
            continue
        at = instant_of(log, seen)
        (hints,) = simulated(at, known.past, draws, seen.row)
        last = known.waits.last(at.asked, 0)
        said = {LAST: [last_of_shape(last)] * 3, REQUEST: [hints.to_the_limit] * 3}
        said |= {ROLLED[count]: quantiles for count, quantiles in rolling(last).items()}
        for name, found in said.items():
            baselines.setdefault(name, []).append(found)
        rows.append(seen.row)
        played.append([hints.p10, hints.p50, hints.p90])
        features.append(vector(at, 0, known, hints))
    return WaitRows(
        log.jobs.submit[rows],
        log.jobs.start[rows],
        np.array(features, np.float32),
        np.array(played, np.float64),
        {name: np.array(found) for name, found in baselines.items()},
    )
