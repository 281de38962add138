"""The job as it was asked for."""

from collections.abc import Iterable
from typing import Final

from gpuwaste.plan.candidates import Candidate
from gpuwaste.plan.plan_request import Asked

RANK: Final = 0


def propose(asked: Asked) -> Iterable[Candidate]:
    """Return the request unchanged."""
    del asked
    yield Candidate("as_asked", "as asked")
