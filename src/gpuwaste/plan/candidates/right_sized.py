"""All reductions of a prediction at the same time: GPUs, time limit, memory."""

from collections.abc import Iterable
from typing import Final

from gpuwaste.plan.candidates import GPUS, MEMORY, TIME, RequestCandidate, change_of, options_of
from gpuwaste.plan.plan_request import PlanRequest

RANK: Final = 2
_PER_GPU: Final = "--mem-per-gpu"


def propose(asked: PlanRequest) -> Iterable[RequestCandidate]:
    """Return the changes together, where there are two or more.

    Memory per GPU was computed for the requested GPUs: with fewer of them it is not changed.
    """
    found = {amount: change for amount in (GPUS, TIME, MEMORY) if (change := change_of(asked, amount)) is not None}
    if GPUS in found and MEMORY in found and any(word.startswith(_PER_GPU) for word in options_of(found[MEMORY])):
        del found[MEMORY]
    if len(found) > 1:
        words = tuple(word for change in found.values() for word in options_of(change))
        yield RequestCandidate("right_sized", "right-sized", words, "; ".join(change.text for change in found.values()))
