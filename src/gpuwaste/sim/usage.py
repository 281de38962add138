"""Decayed usage of associations: what runs is charged each PriorityCalcPeriod, and up to root.

As priority/multifactor has it: a second's decay is 1 - 0.693/half-life; what was used is multiplied with it for each
second that passed, then what ran since the last time is added, seconds * decay^seconds * billing TRES.
"""

import numpy as np
from numpy.typing import NDArray

from gpuwaste.sim.compiled import compiled
from gpuwaste.sim.tres import BILLING, CPU

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
_TINY = 2.2250738585072014e-308  # DBL_MIN, below which slurmctld lets no decay fall


def decay_per_second(half_life_s: int | None) -> float:
    """Return what remains of usage after a second; 1 without a half-life."""
    return 1.0 if half_life_s is None else 1.0 - 0.693 / half_life_s


@compiled
def decay(usage: Floats, per_second: float, seconds: float) -> None:
    """Let usage [n] decay for some seconds, in place."""
    if per_second == 1.0 or seconds <= 0.0:
        return
    usage *= max(per_second**seconds, _TINY)


@compiled
def charge(
    parent: Ints, usage: Floats, association: int, rate: float, per_second: float, since: int, until: int
) -> None:
    """Add what a job used from `since` until `until` (s) to its association and all above it.

    `rate` is the job's billing TRES times the UsageFactor of its QOS. `since` is the later one of its start and of the
    last time that usage was added; at its end a job is charged once more.
    """
    ran = float(max(0, until - since))
    used = ran * per_second**ran * rate
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
