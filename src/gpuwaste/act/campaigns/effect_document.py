"""The parts of a campaign's document: its state, sums, what was given and held back, until when weeks count."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from gpuwaste.act.campaigns.assignment import CampaignsInUse
from gpuwaste.act.campaigns.campaign_definition import Campaign
from gpuwaste.act.campaigns.campaign_keeper import ASSIGNS_ANEW
from gpuwaste.act.campaigns.campaign_store import KeptCampaign, RecordRow
from gpuwaste.act.campaigns.effect_types import CampaignEffect, EffectFigure, RecordLine, State
from gpuwaste.core.units import HOUR_S

SETTLED_S: Final = 6 * HOUR_S  # after a week agents have sent its hours, and accounting its ends


def counted_until(campaign: Campaign, kept: KeptCampaign, record: Iterable[RecordRow], now: int) -> int:
    """Return until when weeks count, UTC seconds: settled ones, before the file was removed or units assigned anew."""
    ends = [line.at_utc for line in record if line.what in ASSIGNS_ANEW and line.at_utc > campaign.start]
    return min([now - SETTLED_S, *ends, kept.gone_utc])


def frame_of(
    campaign: Campaign, kept: KeptCampaign, complete: int, record: Sequence[RecordRow], now: int
) -> CampaignEffect:
    """Return a campaign without figures, after so many complete weeks."""
    state: State = "planned" if now < campaign.start else "running" if now < campaign.end else "ended"
    if kept.gone_utc < campaign.end:
        state = "stopped"
    return CampaignEffect(
        name=campaign.name, state=state, what=list(campaign.head.what), unit=campaign.head.unit, start=campaign.start,
        end=campaign.end, weeks=campaign.weeks, complete=complete, without_data=0, notified=0, held_back=0, sentence="",
        saved_gpu_h=EffectFigure(), saved_ratio=EffectFigure(), held_ratio=EffectFigure(), jobs_ratio=EffectFigure(),
        failed_more=EffectFigure(), timed_out_more=EffectFigure(),
        record=[RecordLine(at=line.at_utc, what=line.what, words=line.words) for line in record],
    )  # fmt: skip


def with_reach(
    effect: CampaignEffect,
    campaign: Campaign,
    in_use: CampaignsInUse,
    reach: Iterable[Mapping[str, object]],
    record: Iterable[RecordRow],
) -> CampaignEffect:
    """Return an effect with the notices that were given and held back, and what the record says against it."""
    assignment, given, withheld, leaked = in_use.assignment, 0, 0, 0
    for row in reach:
        user, account, count = str(row["user"]), str(row["account"]), int(str(row["given"]))
        if not campaign.concerns(user, account):
            continue
        withheld += int(str(row["withheld"]))
        unit = campaign.unit_of(user, account)
        never = assignment is not None and unit and assignment.notified_from(campaign, unit) >= campaign.weeks
        leaked, given = (leaked + count, given) if never else (leaked, given + count)
    anew = [line for line in record if line.what in ASSIGNS_ANEW and line.at_utc > campaign.start]
    problems = [f"{line.what} while it ran ({line.words}): later weeks do not count" for line in anew]
    return replace(effect, notices=given, withheld=withheld, leaked=leaked, problems=problems)
