"""The workload model of Lublin and Feitelson (2003), without its separation of batch and interactive jobs.

Lublin and Feitelson, "The workload on parallel supercomputers: modeling the characteristics of rigid jobs", JPDC 63
(2003). Sizes are log-uniform in two stages, many of them 1 or powers of two. The logarithm of a run time is
hyper-gamma, and wide jobs run longer. Arrivals follow a daily cycle of 48 half hours: each gap between jobs, of a
log-gamma distribution, is paid in points, and a half hour has the more points the more jobs arrive in it. The model
has neither users nor limits: users are drawn evenly, limits as in load.limits_of.
"""

import math
from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpuwaste.sim.generated_load import Ints, JobLog, Load, limits_of
from gpuwaste.sim.parameters import SEED, Parameter

TITLE: Final = "the model of Lublin and Feitelson (2003): sizes, run times and a daily cycle of arrivals"
NEEDS_LOG: Final = False
PARAMETERS: Final[Mapping[str, Parameter]] = {
    "jobs": Parameter(10_000, 1, 5_000_000, "jobs to draw", whole=True),
    "processors": Parameter(256, 2, 10_000_000, "processors of the machine", whole=True),
    "load": Parameter(1, 0.01, 100, "rate of submissions, as a multiple of the model's"),
    "users": Parameter(64, 1, 1_000_000, "users who submit", whole=True),
    "overestimate": Parameter(0, 0, 1000, "time limits are the run time plus up to this many run times"),
    "seed": SEED,
}
_SERIAL, _POWER_OF_TWO = 0.244, 0.576  # shares of jobs
_LOW, _MIDDLE_BELOW_HIGH, _FIRST_STAGE = 0.8, 2.5, 0.86  # of log2 of the size
_SHORT, _LONG = (4.2, 0.94), (312.0, 0.03)  # gamma (shape, scale) of the logarithm of a run time
_SHORT_SLOPE, _SHORT_SHARE = -0.0054, 0.78  # the share of short jobs falls with the size
_GAP = (10.2303 * 1.0225, 0.4871)  # of the logarithm of a gap at rush hour; the shape is that of all hours
_CYCLE = (8.1737, 3.9631)  # of arrivals over half hours
_HALF_HOURS, _HALF_HOUR_S, _FIRST_HALF_HOUR = 48, 1800, 11
_MOST_LOG_RUN, _MOST_LOG_GAP = 12.0, 13.0  # 45 hours and 5 days


def drawn(values: Mapping[str, float], log: JobLog | None) -> Load:
    """Draw a load; see generators."""
    del log
    rng = np.random.default_rng(int(values["seed"]))
    count, processors = int(values["jobs"]), int(values["processors"])
    submit = _arrivals(count, values["load"], rng)
    procs = _sizes(count, processors, rng)
    run = _runs(procs, rng)
    return Load(
        submit=submit,
        run_s=run,
        limit_s=limits_of(run, values["overestimate"], rng),
        procs=procs,
        user=(users := rng.integers(0, int(values["users"]), count)),
        account=users,
        processors=processors,
    )


def _sizes(count: int, processors: int, rng: np.random.Generator) -> Ints:
    high = math.log2(processors)
    middle = max(high - _MIDDLE_BELOW_HIGH, min(_LOW, high))
    kind, stage, place = rng.random(count), rng.random(count), rng.random(count)
    first = stage <= _FIRST_STAGE
    low, top = np.where(first, min(_LOW, middle), middle), np.where(first, middle, high)
    exponent = low + place * (top - low)
    exponent = np.where(kind <= _SERIAL + _POWER_OF_TWO, np.floor(exponent + 0.5), exponent)
    size = np.floor(2.0**exponent + 0.5)
    procs: Ints = np.clip(np.where(kind <= _SERIAL, 1, size), 1, processors).astype(np.int64)
    return procs


def _runs(procs: Ints, rng: np.random.Generator) -> Ints:
    share = np.clip(_SHORT_SLOPE * procs + _SHORT_SHARE, 0, 1)
    logarithm = np.full(len(procs), np.inf)
    while len(left := np.flatnonzero(logarithm > _MOST_LOG_RUN)):
        short = rng.random(len(left)) <= share[left]
        logarithm[left] = np.where(short, rng.gamma(*_SHORT, len(left)), rng.gamma(*_LONG, len(left)))
    run: Ints = np.floor(np.exp(logarithm)).astype(np.int64)
    return run


def _arrivals(count: int, load: float, rng: np.random.Generator) -> Ints:
    """Return instants, seconds from midnight of the first day: where the points of all gaps so far are used up."""
    logarithm = np.full(count, np.inf)
    while len(left := np.flatnonzero(logarithm > _MOST_LOG_GAP)):
        logarithm[left] = rng.gamma(*_GAP, len(left))
    points = np.cumsum(np.exp(logarithm)) / (_HALF_HOUR_S * load)
    weights = _points_of_half_hours()
    of_day = float(weights.sum())
    bounds = np.concatenate([[0.0], np.cumsum(weights)])
    days, rest = np.divmod(points, of_day)
    seconds = np.interp(rest, bounds, np.arange(_HALF_HOURS + 1) * _HALF_HOUR_S)
    return np.floor(days * (_HALF_HOURS * _HALF_HOUR_S) + seconds).astype(np.int64)


def _points_of_half_hours() -> NDArray[np.float64]:
    """Return the points of each half hour of a day [48], of which the mean is 1."""
    shape, scale = _CYCLE
    steps = 200
    edges = np.arange(_FIRST_HALF_HOUR - 0.5, _FIRST_HALF_HOUR + _HALF_HOURS, 1 / steps)
    density = edges ** (shape - 1) * np.exp(-edges / scale)
    area = (density[:-1] + density[1:]) / 2
    weights = area[: _HALF_HOURS * steps].reshape(_HALF_HOURS, steps).sum(axis=1)
    return np.roll(weights / weights.mean(), _FIRST_HALF_HOUR - 1)
