"""Family policy: changes of the site's settings that a simulation proposes; nothing applies them."""

from dataclasses import dataclass
from typing import Annotated, Final

from msgspec import Meta

from gpuwaste.core.codec import Int64, Number, Whole
from gpuwaste.jobs.events.event_kind import EventKind


@dataclass(frozen=True, slots=True)
class PolicyProposed:
    """One change, and what it would have done to the jobs that were simulated."""

    cluster: str
    simulation: Annotated[str, Meta(description="The saved simulation: page /simulations/ID.")]
    change: Annotated[str, Meta(description="The what-if with its value, such as limits=0.9.")]
    scheduler: str
    jobs: Annotated[Whole, Meta(description="Jobs in both runs.")]
    mean_wait_s: Annotated[Number, Meta(description="Change of the mean wait, seconds; below 0: shorter.")]
    low_s: Annotated[Number, Meta(description="Lower end of its 95 % interval, seconds.")]
    high_s: Annotated[Number, Meta(description="Upper end, below 0.")]
    later: Annotated[Number, Meta(description="Share of the jobs that start later, 0 to 1.")]
    among: Annotated[Whole, Meta(description="Changes that were simulated: the best of many looks better than it is.")]
    at: Annotated[Int64, Meta(description="When the simulation was saved, UTC seconds.")]


KINDS: Final = (EventKind("policy.proposed", "A simulation proposes a change of the site's settings.", PolicyProposed),)
