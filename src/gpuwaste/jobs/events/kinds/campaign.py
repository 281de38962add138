"""Family campaign: what the site's campaigns measure, and what happens to their files."""

from dataclasses import dataclass
from typing import Annotated, Final

from msgspec import Meta

from gpuwaste.core.codec import Int64, Number, Whole
from gpuwaste.jobs.events.event_kind import EventKind

_MAYBE: Final = "null: not known yet."


@dataclass(frozen=True, slots=True)
class CampaignNoted:
    """A line of a campaign's record."""

    cluster: str
    campaign: str
    what: Annotated[str, Meta(description="found, changed, removed, returned, key changed, ended.")]
    words: Annotated[str, Meta(description="What changed, the owner of the file, and the reason that it gives.")]
    at: Annotated[Int64, Meta(description="UTC seconds.")]


@dataclass(frozen=True, slots=True)
class CampaignMeasured:
    """What a campaign has shown after one more week."""

    cluster: str
    campaign: str
    week: Annotated[Whole, Meta(description="Complete weeks.")]
    weeks: Annotated[Whole, Meta(description="Planned weeks.")]
    saved_gpu_h: Annotated[Number | None, Meta(description=f"Saved idle GPU-hours. {_MAYBE}")]
    low_gpu_h: Annotated[Number | None, Meta(description=f"Lower end of the 95 % interval. {_MAYBE}")]
    high_gpu_h: Annotated[Number | None, Meta(description=f"Upper end of the 95 % interval. {_MAYBE}")]
    notified: Annotated[Whole, Meta(description="Users or accounts that are notified.")]
    held_back: Annotated[Whole, Meta(description="Users or accounts that are held back.")]
    sentence: str
    at: Annotated[Int64, Meta(description="UTC seconds.")]


KINDS: Final = (
    EventKind("campaign.noted", "A campaign was found, changed, removed, or has ended.", CampaignNoted),
    EventKind("campaign.measured", "A campaign has one more complete week.", CampaignMeasured),
)
