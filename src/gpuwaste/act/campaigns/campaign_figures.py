"""The figures of a campaign's document, from its weeks: saved GPU-hours, failures, sums of both sides. Needs numpy."""

from collections.abc import Callable

from msgspec.structs import replace

from gpuwaste.act.campaigns.assignment import Assignment
from gpuwaste.act.campaigns.campaign_definition import Campaign
from gpuwaste.act.campaigns.campaign_effect import more_of_jobs, saved_share, smallest_effect, with_spill_over
from gpuwaste.act.campaigns.campaign_panel import CampaignData, Outcomes, campaign_data
from gpuwaste.act.campaigns.effect_types import CampaignEffect, EffectFigure
from gpuwaste.core.site_config import EnergyConfig


def with_figures(
    base: CampaignEffect, campaign: Campaign, assignment: Assignment, weeks: Outcomes, prices: EnergyConfig
) -> CampaignEffect:
    """Return an effect with its figures; `weeks` are those before the campaign, then its complete ones."""
    earlier = len(campaign.before) - 1
    data = campaign_data(campaign, assignment, weeks[:earlier], weeks[earlier:])
    notified = int((data.notified_from < max(data.looks, 1)).sum())
    found = replace(
        base,
        notified=notified,
        held_back=len(data.units) - notified,
        without_data=data.looks - int(data.known.sum()),
        smallest_ratio=smallest_effect(data, base.weeks),
        **_sums_of(data),
    )
    return _with_saving(found, data, prices) if data.looks else found


def _with_saving(found: CampaignEffect, data: CampaignData, prices: EnergyConfig) -> CampaignEffect:
    saved, idle = saved_share(data, "idle_h"), data.sum_notified("idle_h")
    price = prices.price_per_gpu_hour
    amount = _scaled(saved, lambda share: share / (1 - share) * idle)
    return replace(
        found,
        saved_ratio=saved,
        saved_gpu_h=amount,
        spill_over_ratio=with_spill_over(saved.value) if saved.value and saved.low and saved.low > 0 else None,
        worth=_scaled(amount, lambda value: value * price) if price else EffectFigure(),
        currency=prices.currency if price else "",
        held_ratio=saved_share(data, "held_h"),
        jobs_ratio=saved_share(data, "jobs"),
        failed_more=more_of_jobs(data, "failed"),
        timed_out_more=more_of_jobs(data, "timed_out"),
    )


def _sums_of(data: CampaignData) -> dict[str, float | None]:
    """Return the GPU-hours of both sides, what of them is unknown, and the largest unit's share."""
    notified, other = data.sum_notified("held_h"), data.sum_held_back("held_h")
    by_unit_h = data.during["held_h"].sum(axis=1) + data.before["held_h"].sum(axis=1)
    whole = float(by_unit_h.sum())
    return {
        "notified_held_gpu_h": notified,
        "notified_idle_gpu_h": data.sum_notified("idle_h"),
        "other_held_gpu_h": other,
        "other_idle_gpu_h": data.sum_held_back("idle_h"),
        "notified_unknown_ratio": data.sum_notified("unknown_h") / notified if notified else None,
        "other_unknown_ratio": data.sum_held_back("unknown_h") / other if other else None,
        "largest_unit_ratio": float(by_unit_h.max()) / whole if whole else None,
    }


def _scaled(figure: EffectFigure, by: Callable[[float], float]) -> EffectFigure:
    """Return a figure in another unit."""
    value, low, high = (None if one is None else by(one) for one in (figure.value, figure.low, figure.high))
    return EffectFigure(value=value, low=low, high=high)
