"""Fair Tree: the decayed usage of associations, and the fair share of each user that is ranked from it.

LF = S/U on each level, S the part of the level's shares, U the part of the usage of what is above; S = 0
gives 0, U = 0 infinity, a user who shares as the parent infinity. Siblings are sorted by LF, users before accounts, and
walked; each user gets rank / users, tied ones the same rank. The documentation merges the children of tied accounts
before it sorts them. slurmctld's code (22.05.8) does not: a tied account only hands on the rank before it.

Whether two associations tie in Fair Tree is a comparison of such quotients: in float64 some tie that slurmctld
distinguishes. Products and sums without an error follow Dekker (1971) and Knuth.

As in priority/multifactor: a second's decay is 1 - 0.693/half-life; what was used is multiplied with it for each
second that passed, then what ran since the last time is added, seconds * decay^seconds * billing TRES.
"""

import math
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpuwaste.sim.accounts import AccountTree
from gpuwaste.sim.assoc_limits import BILLING, CPU
from gpuwaste.sim.compiled import compiled, in_place

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
_TINY: Final = 2.2250738585072014e-308  # DBL_MIN, below which slurmctld lets no decay fall
_SUNDAY: Final = 7
_NO_VAL = 4294967294.0  # what slurmctld gives an account that shares as its parent: such a one has nothing below it
_SPLIT = 134217729.0  # 2^27 + 1
_BITS = 64


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
    only other TRES are added; all columns of assoc_limits.py but billing are such ones.
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


@compiled
def set_level(tree: AccountTree, usage: Floats, level: Floats, low: Floats) -> None:
    """Write LF of each association [n]; `low` gets what float64 leaves of slurmctld's 64 bits."""
    for k in range(len(usage)):
        low[k] = 0.0
        above = tree.above[k]
        if tree.inherits[k] or above < 0:
            level[k] = np.inf if tree.is_user[k] else _NO_VAL
        elif tree.share[k] == 0.0:
            level[k] = 0.0
        elif usage[above] <= 0.0 or usage[k] <= 0.0:
            level[k] = np.inf
        else:
            part, part_low = quotient(usage[k], usage[above], 0.0)
            level[k], low[k] = quotient(tree.share[k], part, part_low)


@compiled
def gather(tree: AccountTree, accounts: Ints, keys: tuple[Floats, Floats], into: Ints, end: int) -> int:
    """Append what is below some accounts to `into`, sorted by LF, users before accounts; returns the new end."""
    level, low = keys
    begin = end
    for users in (True, False):
        for account in accounts:
            for k in range(tree.first[account], tree.first[account + 1]):
                if tree.is_user[tree.below[k]] == users:
                    into[end] = tree.below[k]
                    end += 1
    found = into[begin:end].copy()
    found = found[np.argsort(-low[found], kind="mergesort")]
    into[begin:end] = found[np.argsort(-level[found], kind="mergesort")]
    return end


@compiled
def fair_tree(tree: AccountTree, usage: Floats, merge: bool, factor: Floats, level: Floats) -> None:
    """Write the fair share [n] of users, 0 to 1, and LF [n] of all, from decayed usage [n].

    `merge` takes the documentation's rule for tied accounts, else slurmctld's. Accounts keep a fair share of 0.
    """
    n = len(usage)
    low = np.empty(n)
    set_level(tree, usage, level, low)
    line = np.empty(n, np.int64)  # the siblings of each level that is being walked, one level after the other
    begin, place, stop = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)
    carried = np.zeros(n + 1, np.bool_)
    top = np.empty(1, np.int64)
    top[0] = tree.root
    stop[0] = gather(tree, top, (level, low), line, 0)
    depth, rank, untied = 0, tree.users, tree.users
    while depth >= 0:
        k = place[depth]
        if k == stop[depth]:
            depth -= 1
            continue
        node = line[k]
        tied = carried[depth]
        if k > begin[depth]:
            tied = level[line[k - 1]] == level[node] and low[line[k - 1]] == low[node]
        last = k + 1
        if tree.is_user[node]:
            if not tied:
                rank = untied
            factor[node] = rank / tree.users
            untied -= 1
            place[depth] = last
            continue
        while merge and last < stop[depth] and level[line[last]] == level[node] and low[line[last]] == low[node]:
            last += 1
        place[depth] = last
        end = stop[depth]
        depth += 1
        begin[depth] = place[depth] = end
        stop[depth] = gather(tree, line[k:last], (level, low), line, end)
        carried[depth] = tied


@compiled
def product_error(a: float, b: float) -> float:
    """Return a * b - fl(a * b), exactly (Dekker), for products that do not overflow."""
    t = _SPLIT * a
    a_high = t - (t - a)
    a_low = a - a_high
    t = _SPLIT * b
    b_high = t - (t - b)
    b_low = b - b_high
    return ((a_high * b_high - a * b) + a_high * b_low + a_low * b_high) + a_low * b_low


@compiled
def rounded(high: float, low: float) -> tuple[float, float]:
    """Return high + low, of which `low` is at most half a unit of `high`, rounded to 64 bits: one pair a value."""
    mantissa, exponent = math.frexp(high)
    if mantissa == 0.5 and low < 0.0:  # noqa: PLR2004 - a power of two: what is below it has a smaller exponent
        exponent -= 1
    unit = math.ldexp(1.0, exponent - _BITS)
    low = round(low / unit) * unit
    found = high + low
    return found, low - (found - high)


@compiled
def quotient(a: float, b: float, b_low: float) -> tuple[float, float]:
    """Return a / (b + b_low), rounded to 64 bits, as two parts; a above 0, b above 0."""
    first = a / b
    product = first * b
    rest = ((a - product) - product_error(first, b)) - first * b_low
    second = rest / b
    high = first + second
    return rounded(high, second - (high - first))
