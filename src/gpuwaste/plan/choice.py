"""Which candidate serves a goal best.

A goal orders by its own measure first; candidates that are equal in it are ordered by the next one. What is not known
of a candidate comes last, so that a plan never prefers what it knows nothing of.
"""

from collections.abc import Callable, Sequence
from math import inf

from gpuwaste.plan.document import Goal, PlanCandidate

Order = Callable[[PlanCandidate], tuple[float, ...]]


def _end(one: PlanCandidate) -> float:
    return inf if one.expected_end is None else one.expected_end


def _cost(one: PlanCandidate) -> float:
    cost = one.billing_hours if one.billing_hours is not None else one.gpu_hours
    return inf if cost is None else cost


def _risk(one: PlanCandidate) -> float:
    return inf if one.risk is None else one.risk


ORDERS: dict[Goal, Order] = {
    "fastest": lambda one: (_end(one), _cost(one), _risk(one), one.number),
    "cheapest": lambda one: (_cost(one), _end(one), _risk(one), one.number),
    "safest": lambda one: (_risk(one), _end(one), _cost(one), one.number),
}


def choose(candidates: Sequence[PlanCandidate], goal: Goal, deadline: int | None = None) -> PlanCandidate | None:
    """Return the best of those that can be chosen; of those that end by the deadline, where there are any.

    None where none is valid. With a deadline that nobody meets it is the one that ends first.
    """
    ready = [one for one in candidates if one.ready]
    if deadline is None:
        return min(ready, key=ORDERS[goal], default=None)
    in_time = [one for one in ready if meets(one, deadline)]
    return min(in_time, key=ORDERS[goal]) if in_time else min(ready, key=ORDERS["fastest"], default=None)


def meets(one: PlanCandidate, deadline: int) -> bool:
    """Tell whether a candidate ends by the deadline in 90 of 100 cases; one without a known end does not."""
    return one.sure_end is not None and one.sure_end <= deadline
