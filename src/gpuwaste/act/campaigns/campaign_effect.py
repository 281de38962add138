"""The effect of a campaign: figures with intervals, and the smallest effect that could be seen."""

from collections.abc import Callable
from typing import Final

import numpy as np

from gpuwaste.act.campaigns.campaign_panel import CampaignData, relative_panel, share_panel
from gpuwaste.act.campaigns.effect_types import EffectFigure
from gpuwaste.act.campaigns.randomisation import (
    Floats,
    Panel,
    Paths,
    adjusted,
    estimate,
    grid_around,
    interval,
    paths,
    smallest_shift,
)

LEAST_UNITS: Final = 4  # on each side
_SHARES: Final = (-3.0, 0.95)  # the saved shares that are tried
_POINTS: Final = (-1.0, 1.0)
SPILL: Final = 0.5


def enough(data: CampaignData) -> bool:
    """Return whether both sides have units to compare, and a week has data."""
    notified = data.notified.sum(axis=0)
    both = (notified >= LEAST_UNITS) & (len(data.units) - notified >= LEAST_UNITS) & data.known
    return bool(both.any())


def saved_share(data: CampaignData, name: str) -> EffectFigure:
    """Return the saved share of an outcome, below 0 for more of it."""
    low, high = _SHARES
    return _figure(relative_panel(data, name), data, low / (1 - low), high / (1 - high), lambda x: x / (1 + x))


def more_of_jobs(data: CampaignData, name: str) -> EffectFigure:
    """Return by how much the share of jobs that failed, or timed out, is larger where notified."""
    return _figure(share_panel(data, name), data, *_POINTS, lambda x: x)


def _figure(
    panel: Panel, data: CampaignData, low: float, high: float, as_figure: Callable[[float], float]
) -> EffectFigure:
    if not enough(data):
        return EffectFigure()
    found = paths(panel, data.planned)
    middle = estimate(found, data.looks)
    if middle is None:
        return EffectFigure()
    ends = _ends(found, data.looks, grid_around(middle, low, high))
    inside = low < middle < high
    return EffectFigure(
        value=as_figure(middle) if inside else None,
        low=None if ends[0] is None else as_figure(ends[0]),
        high=None if ends[1] is None else as_figure(ends[1]),
    )


def _ends(found: Paths, looks: int, grid: Floats) -> tuple[float | None, float | None]:
    """Return the interval after so many looks; where the looks leave nothing, that of the last one that left something.

    The interval of one look has the effects that earlier looks left. It is empty only where the effect changed over
    time.
    """
    for number in range(looks, 0, -1):
        ends = interval(found, number, grid)
        if ends is not None:
            return ends
    return None, None


def smallest_effect(data: CampaignData, weeks: int) -> float | None:
    """Return the smallest saved share of idle GPU-hours that `weeks` weeks would show in 80 of 100 cases; None: none.

    From the weeks before the campaign: the first half adjusts the second half.
    """
    idle = data.before["idle_h"]
    half = idle.shape[1] // 2
    if half < 1 or not len(idle):
        return None
    mean = idle[:, :half].mean(axis=1)
    scale = np.sqrt(mean + max(float(mean.mean()), 1e-9))[:, None]
    later = idle[:, half:] / scale
    return smallest_shift(adjusted(later, mean[:, None] / scale), data.notified_from, weeks, float(later.mean()))


def with_spill_over(share: float, spill: float = SPILL) -> float:
    """Return the saved share of those notified if those held back saved `spill` times as much, since users talk.

    The measured share m compares the two: 1 - m = (1 - s) / (1 - spill x s), solved for s.
    """
    return share / (1 - spill * (1 - share))
