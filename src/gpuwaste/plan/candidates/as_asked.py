"""The job as requested."""

from collections.abc import Iterable
from typing import Final

from gpuwaste.plan.candidates import RequestCandidate
from gpuwaste.plan.plan_request import PlanRequest

RANK: Final = 0


def propose(asked: PlanRequest) -> Iterable[RequestCandidate]:
    """Return the request unchanged."""
    del asked
    yield RequestCandidate("as_asked", "as requested")
