"""A shorter time limit: a quantile of the run time that the model or the user's history expects."""

from collections.abc import Iterable
from typing import Final

from gpuwaste.plan.candidates import TIME, RequestCandidate, change_of, options_of
from gpuwaste.plan.plan_request import PlanRequest

RANK: Final = 4


def propose(asked: PlanRequest) -> Iterable[RequestCandidate]:
    """Return the change that a prediction of the job proposes, if any."""
    if (change := change_of(asked, TIME)) is not None:
        yield RequestCandidate("shorter_limit", "shorter time limit", options_of(change), change.text)
