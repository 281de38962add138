"""Decayed usage of associations: what runs is charged each PriorityCalcPeriod, and up to root.

As priority/multifactor has it: a second's decay is 1 - 0.693/half-life; what was used is multiplied with it for each
second that passed, then what ran since the last time is added, seconds * decay^seconds * billing TRES.
"""

from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpuwaste.sim.compiled import compiled, in_place
from gpuwaste.sim.tres import BILLING, CPU

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
_TINY: Final = 2.2250738585072014e-308  # DBL_MIN, below which slurmctld lets no decay fall
_SUNDAY: Final = 7


def decay_per_second(half_life_s: int | None) -> float:
    """Return what remains of usage after a second; 1 without a half-life."""
    return 1.0 if half_life_s is None else 1.0 - 0.693 / half_life_s


@compiled
def decay(usage: Floats, per_second: float, seconds: float) -> None:
    """Let usage [n] decay for some seconds, in place."""
    if per_second == 1.0 or seconds <= 0.0:
        return
    usage *= max(per_second**seconds, _TINY)


@in_place
def decayed(since: int, until: int, per_second: float) -> float:
    """Return the seconds from `since` until `until` as they count at the end of them; also for GrpWall."""
    ran = float(max(0, until - since))
    return float(ran * per_second**ran)


@in_place
def charge(
    parent: Ints, usage: Floats, association: int, rate: float, per_second: float, since: int, until: int
) -> None:
    """Add what a job used from `since` until `until` (s) to its association and all above it.

    `rate` is the job's billing TRES times the UsageFactor of its QOS. `since` is the later one of its start and of the
    last time that usage was added; at its end a job is charged once more.
    """
    used = decayed(since, until, per_second) * rate
    while association >= 0:
        usage[association] += used
        association = parent[association]


def billing(amounts: Floats, weights: Floats | None, *, max_tres: bool = False) -> Floats:
    """Return the billing TRES [n] of jobs that hold `amounts` [n, TRES], by a partition's TRESBillingWeights [TRES].

    Without weights that is the CPUs. With MAX_TRES of PriorityFlags the largest of cpu, mem, node and gres counts, and
    only other TRES are added; all columns of tres.py but billing are such ones.
    """
    if weights is None:
        return amounts[:, CPU].astype(np.float64)
    weighed = amounts * weights
    weighed[:, BILLING] = 0.0
    found: Floats = np.maximum(weighed.max(axis=1), 0.0) if max_tres else weighed.sum(axis=1)
    return found


def resets(period: str, since: int, until: int, zone: tzinfo = UTC) -> Ints:
    """Return the instants after `since` and up to `until` (UTC s) at which PriorityUsageResetPeriod sets usage to zero.

    Midnight of each day, of Sunday, of the first of a month, of a quarter or of a year in slurmctld's time zone; NOW is
    `since` itself.
    """
    if period in {"NONE", "NOW"}:
        return np.array([since] if period == "NOW" else [], dtype=np.int64)
    months = {"QUARTERLY": (1, 4, 7, 10), "YEARLY": (1,)}.get(period, tuple(range(1, 13)))
    day = datetime.fromtimestamp(since, zone).date()
    found: list[int] = []
    while True:
        day += timedelta(days=1)
        instant = int(datetime(day.year, day.month, day.day, tzinfo=zone).timestamp())
        if instant > until:
            return np.array(found, dtype=np.int64)
        first = day.day == 1 and day.month in months
        if period == "DAILY" or (day.isoweekday() == _SUNDAY if period == "WEEKLY" else first):
            found.append(instant)
