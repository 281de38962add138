"""Fewer GPUs: as many as the job uses by the model or the user's history."""

from collections.abc import Iterable
from typing import Final

from gpuwaste.plan.candidates import GPUS, RequestCandidate, change_of, options_of
from gpuwaste.plan.plan_request import PlanRequest

RANK: Final = 3


def propose(asked: PlanRequest) -> Iterable[RequestCandidate]:
    """Return the change that a prediction of the job proposes, if any."""
    if (change := change_of(asked, GPUS)) is not None:
        yield RequestCandidate("fewer_gpus", "fewer GPUs", options_of(change), change.text)
