"""Another QOS that the user's account has."""

from collections.abc import Iterable
from typing import Final

from gpuwaste.plan.candidates import RequestCandidate
from gpuwaste.plan.plan_request import PlanRequest

RANK: Final = 8
_MOST: Final = 4


def propose(asked: PlanRequest) -> Iterable[RequestCandidate]:
    """Return a request for each other QOS of the association."""
    found = asked.site.membership(asked.account, asked.partition)
    others = sorted(found.qos - {asked.qos}) if found else []
    for name in others[:_MOST]:
        yield RequestCandidate("qos", f"QOS {name}", (f"--qos={name}",))
