"""Less memory: what the model expects, with headroom."""

from collections.abc import Iterable
from typing import Final

from gpuwaste.plan.candidates import MEMORY, RequestCandidate, change_of, options_of
from gpuwaste.plan.plan_request import PlanRequest

RANK: Final = 5


def propose(asked: PlanRequest) -> Iterable[RequestCandidate]:
    """Return the change that a prediction of the job proposes, if any."""
    if (change := change_of(asked, MEMORY)) is not None:
        yield RequestCandidate("smaller_memory", "less memory", options_of(change), change.text)
