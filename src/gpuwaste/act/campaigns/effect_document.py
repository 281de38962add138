"""The parts of a campaign's document: its state, sums, what was given and held back, until when weeks count."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from gpuwaste.act.campaigns.assignment import CampaignsInUse
from gpuwaste.act.campaigns.campaign_definition import Campaign
from gpuwaste.act.campaigns.campaign_keeper import ASSIGNS_ANEW
from gpuwaste.act.campaigns.campaign_panel import CampaignData
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
        end=campaign.end, weeks=campaign.weeks, complete=complete, without_data=0, told=0, held_back=0, sentence="",
        saved_gpu_h=EffectFigure(), saved_ratio=EffectFigure(), held_ratio=EffectFigure(), jobs_ratio=EffectFigure(),
        failed_more=EffectFigure(), timed_out_more=EffectFigure(),
        record=[RecordLine(at=line.at_utc, what=line.what, words=line.words) for line in record],
    )  # fmt: skip


def scaled(figure: EffectFigure, by: Callable[[float], float]) -> EffectFigure:
    """Return a figure in another unit."""
    value, low, high = (None if one is None else by(one) for one in (figure.value, figure.low, figure.high))
    return EffectFigure(value=value, low=low, high=high)


def sums_of(data: CampaignData) -> dict[str, float | None]:
    """Return the GPU-hours of both sides, what of them is unknown, and the largest unit's share."""
    told, other = data.sum_told("held_h"), data.sum_held_back("held_h")
    by_unit_h = data.during["held_h"].sum(axis=1) + data.before["held_h"].sum(axis=1)
    whole = float(by_unit_h.sum())
    return {
        "told_held_gpu_h": told,
        "told_idle_gpu_h": data.sum_told("idle_h"),
        "other_held_gpu_h": other,
        "other_idle_gpu_h": data.sum_held_back("idle_h"),
        "told_unknown_ratio": data.sum_told("unknown_h") / told if told else None,
        "other_unknown_ratio": data.sum_held_back("unknown_h") / other if other else None,
        "largest_unit_ratio": float(by_unit_h.max()) / whole if whole else None,
    }


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
        never = assignment is not None and unit and assignment.told_from(campaign, unit) >= campaign.weeks
        leaked, given = (leaked + count, given) if never else (leaked, given + count)
    anew = [line for line in record if line.what in ASSIGNS_ANEW and line.at_utc > campaign.start]
    problems = [f"{line.what} while it ran ({line.words}): later weeks do not count" for line in anew]
    return replace(effect, notices=given, withheld=withheld, leaked=leaked, problems=problems)
