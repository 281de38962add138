"""How likely a running job is to reach its limit, from what is predicted of its request and how long it has run."""

from collections.abc import Sequence
from itertools import accumulate, pairwise

from gpuwaste.advice.predict.prediction import TargetPrediction


def limit_chance(said: Sequence[TargetPrediction], ran_s: float, limit_s: float) -> float | None:
    """Return P(the run reaches `limit_s` | it has lasted `ran_s`), None where nothing is known of either.

    Two things say how many runs reach the limit at all: the target timeout, and a quantile of the run time that is the
    limit; the larger counts. How many last for `ran_s` is read from the quantiles, straight between them, and from the
    last one on straight to those that reach the limit. So who has outlived all that is known goes on to the limit.
    """
    by_name = {one.target: one for one in said}
    timeout, walltime = by_name.get("timeout"), by_name.get("walltime")
    quantiles = {} if walltime is None else walltime.quantiles
    known = sorted((float(level), seconds) for level, seconds in quantiles.items())
    reaching = [1 - level for level, seconds in known if seconds >= limit_s]
    if timeout is not None and timeout.p is not None:
        reaching.append(_share(timeout))
    if not reaching or limit_s <= 0:
        return None
    p = max(reaching)
    within = sorted((seconds, 1 - level) for level, seconds in known if 0 < seconds < limit_s)
    lasting = accumulate((share for _, share in within), min)  # quantiles of a model may cross; nobody lives again
    within = [(seconds, share) for (seconds, _), share in zip(within, lasting, strict=True)]
    alive = max(_lasting([(0.0, 1.0), *within, (limit_s, p)], ran_s), p)
    return p / alive if alive > 0 else None


def _lasting(shares: Sequence[tuple[float, float]], at_s: float) -> float:
    """Return the share of runs that last for `at_s`, straight between (seconds, share); the last share beyond."""
    for (begin, before), (end, after) in pairwise(shares):
        if begin <= at_s < end:
            return before + (after - before) * (at_s - begin) / (end - begin)
    return shares[-1][1]


def _share(timeout: TargetPrediction) -> float:
    """Return the share of runs that reach their limit; of k counted ones one more of either kind is added (Laplace)."""
    assert timeout.p is not None  # noqa: S101 narrows the type
    if timeout.source != "history":
        return timeout.p
    return (timeout.p * timeout.basis + 1) / (timeout.basis + 2)
