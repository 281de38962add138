"""A key's memory of all its ended runs: exponentially weighted rates, one step for each end.

Each step is implemented twice, for one run and for arrays of keys, with the same float64 operations in the same
order, so that both give the same bits.
"""

import math
from typing import Final

import numpy as np

from gpuwaste.core.units import MINUTE_S
from gpuwaste.jobs.history.job_table import Floats
from gpuwaste.jobs.history.outcome import Outcome
from gpuwaste.jobs.history.packed_rows import LATE

FAST: Final = 0.25  # weight of the newest end: half of the weight is on the last 2.4 ends
SLOW: Final = 0.03  # on the last 23 ends
PACE: Final = 0.2  # of run times: on the last 3.1 ends
HALF_MAX: Final = 65504.0  # the largest float16
STREAK_MAX: Final = 127
COUNT_MAX: Final = (1 << 16) - 1
NEAR_LIMIT: Final = 0.95  # a run is at its limit from this share of it on, or from one minute before it
BURST_S: Final = 60.0  # submissions of one key with gaps up to this are one burst
PEAK_UNIT_B: Final = float(1 << 28)  # of the last peak: a float16 then holds 16 B to 16 TiB
Rates = tuple[float, float, float, float, float]  # packed_rows.EWS, then the streak


def after_end(  # noqa: PLR0917 a call for each key of each end: keywords would take a fifth of it
    fast: float, slow: float, mean: float, var: float, streak: float, failed: float, log_run: float
) -> Rates:
    """Return rates and streak after one more end; `failed` is 1, 0 or NaN (neither), `log_run` may be NaN.

    The streak counts failures in a row (positive) or completed runs in a row (negative), up to STREAK_MAX.
    """
    if failed == failed:  # noqa: PLR0124 not NaN
        if fast != fast:  # noqa: PLR0124
            fast = slow = failed
        else:
            fast += FAST * (failed - fast)
            slow += SLOW * (failed - slow)
        if failed == 1.0:
            streak = 1.0 if streak < 0.0 else streak + 1.0 if streak < STREAK_MAX else streak
        else:
            streak = -1.0 if streak > 0.0 else streak - 1.0 if streak > -STREAK_MAX else streak
    if log_run == log_run:  # noqa: PLR0124
        if mean != mean:  # noqa: PLR0124
            mean, var = log_run, 0.0
        else:
            step = log_run - mean
            mean += PACE * step
            var = (1.0 - PACE) * (var + PACE * (step * step))
    return fast, slow, mean, var, streak


def after_ends(rates: Floats, failed: Floats, log_run: Floats) -> Floats:
    """Return rates and streak [m, 5] of m keys after one more end of each: `after_end` for arrays."""
    fast, slow, mean, var, streak = rates.T
    first = np.isnan(mean)
    step = log_run - mean
    after = np.empty_like(rates)
    after[:, 0] = _blend(fast, failed, FAST)
    after[:, 1] = _blend(slow, failed, SLOW)
    known = ~np.isnan(log_run)
    after[:, 2] = np.where(known, np.where(first, log_run, mean + PACE * step), mean)
    after[:, 3] = np.where(known, np.where(first, 0.0, (1.0 - PACE) * (var + PACE * (step * step))), var)
    worse = np.minimum(np.maximum(streak, 0.0) + 1.0, STREAK_MAX)
    better = np.maximum(np.minimum(streak, 0.0) - 1.0, -STREAK_MAX)
    after[:, 4] = np.where(failed == 1.0, worse, np.where(failed == 0.0, better, streak))
    return after


def _blend(old: Floats, new: Floats, weight: float) -> Floats:
    blended = old + weight * (new - old)
    return np.where(np.isnan(new), old, np.where(np.isnan(old), new, blended))


def log_of(value: float) -> float:
    """Return the natural logarithm of seconds or bytes, at least 1; NaN stays NaN."""
    return math.log(max(value, 1.0)) if value == value else value  # noqa: PLR0124


def logs_of(values: Floats) -> Floats:
    """Return `log_of` for each, with the same function, since numpy's may differ in the last bit."""
    return np.fromiter(map(log_of, values.tolist()), dtype=np.float64, count=len(values))


def minutes(seconds: float) -> float:
    """Return minutes that a float16 can hold."""
    return min(max(seconds / MINUTE_S, 0.0), HALF_MAX)


def half(amount: float | None) -> float:
    """Return an amount that a float16 can hold, NaN for none."""
    return math.nan if amount is None else min(max(float(amount), 0.0), HALF_MAX)


def at_limit(run_s: float, limit_s: float) -> bool:
    """Return whether a run was so near its limit that the limit ended it (False where one is not known)."""
    return run_s >= NEAR_LIMIT * limit_s or run_s >= limit_s - MINUTE_S


# By the codes of a ring's outcomes: an Outcome, plus LATE where the run reached its limit.
FAILED_OF: Final = np.full(2 * LATE, np.nan)
FAILED_OF[[Outcome.FAILED, Outcome.OUT_OF_MEMORY, Outcome.FAILED + LATE, Outcome.OUT_OF_MEMORY + LATE]] = 1.0
FAILED_OF[[Outcome.COMPLETED, Outcome.COMPLETED + LATE]] = 0.0
FAILED_LIST: Final[list[float]] = FAILED_OF.tolist()
RECENT_OF: Final = np.stack((FAILED_OF == 1.0, FAILED_OF == 0.0, np.arange(2 * LATE) >= LATE), axis=1)
RECENT_LIST: Final[list[list[int]]] = RECENT_OF.astype(int).tolist()
