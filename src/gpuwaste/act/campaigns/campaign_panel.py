"""The outcomes of a campaign as panels for randomisation inference: one for each figure.

Idle and held GPU-hours, and jobs, are tested as a share: where the effect is x, a notified unit would have had (1 + x)
times as much without the campaign, so x = s / (1 - s) for a saved share s. A unit's outcome is divided by the square
root of its own mean before plus the mean of all: heavy users count more, but not in proportion, as their weeks also
vary more.
Failures and time-outs are tested as a difference of shares of jobs.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from gpuwaste.act.campaigns.assignment import Assignment
from gpuwaste.act.campaigns.campaign_definition import Campaign
from gpuwaste.act.campaigns.randomisation import Floats, Panel, Whole, exposed
from gpuwaste.act.campaigns.unit_weeks import WeekOutcome

MIN_KNOWN: Final = 0.5  # of the GPU-hours of a week: below it the week is left out
_PRIOR_JOBS: Final = 20.0  # a unit's own share of failures counts from so many jobs on

Outcomes = Sequence[Mapping[str, WeekOutcome]]


@dataclass(frozen=True, slots=True)
class CampaignData:
    """Units of a campaign with their outcomes, units x weeks, before it and in its complete weeks."""

    units: Sequence[str]
    notified_from: Whole
    before: Mapping[str, Floats]
    during: Mapping[str, Floats]
    known: npt.NDArray[np.bool_]
    planned: int

    @property
    def looks(self) -> int:
        """How many weeks are complete."""
        return len(self.known)

    @property
    def notified(self) -> Floats:
        """1 for each unit and complete week in which it is notified, else 0; 0 in weeks without data."""
        found: Floats = exposed(self.notified_from, self.looks) * self.known
        return found

    def sum_notified(self, name: str) -> float:
        """Return the sum of an outcome over notified units and weeks."""
        return float((self.during[name] * self.notified).sum())

    def sum_held_back(self, name: str) -> float:
        """Return the sum of an outcome over units and weeks that are not notified."""
        return float((self.during[name] * (self.known - self.notified)).sum())


NAMES: Final = ("held_h", "idle_h", "unknown_h", "jobs", "failed", "timed_out")


def campaign_data(campaign: Campaign, assignment: Assignment, before: Outcomes, during: Outcomes) -> CampaignData:
    """Return the outcomes of every unit that had a job before or in the campaign, in the order of the names.

    A unit without a job in a week has 0 there: who leaves still counts.
    """
    units = sorted({unit for week in (*before, *during) for unit in week})
    notified_from = np.array([assignment.notified_from(campaign, unit) for unit in units], dtype=np.int64)
    tables = {name: _table(units, during, name) for name in NAMES}
    held, unknown = tables["held_h"].sum(axis=0), tables["unknown_h"].sum(axis=0)
    known = (held > 0) & (held - unknown >= MIN_KNOWN * held)
    earlier = {name: _table(units, before, name) for name in NAMES}
    return CampaignData(units, notified_from, earlier, tables, known, campaign.weeks)


def _table(units: Sequence[str], weeks: Outcomes, name: str) -> Floats:
    read: Callable[[Mapping[str, WeekOutcome], str], float] = lambda week, unit: (  # noqa: E731 one line of a table
        float(getattr(week[unit], name)) if unit in week else 0.0
    )
    return np.array([[read(week, unit) for week in weeks] for unit in units], dtype=float).reshape(
        len(units), len(weeks)
    )


def relative_panel(data: CampaignData, name: str) -> Panel:
    """Return the panel of an outcome whose effect is a share."""
    before, during = data.before[name], data.during[name]
    mean = before.mean(axis=1) if before.size else np.zeros(len(data.units))
    held = data.before["held_h"].mean(axis=1) if before.size else mean
    scale = np.sqrt(mean + max(float(mean.mean()), 1e-9)) if len(mean) else mean
    base = during / scale[:, None]
    own = np.column_stack([mean, held]) / scale[:, None]
    return Panel(base, exposed(data.notified_from, data.looks) * base, data.notified_from, own, data.known)


def share_panel(data: CampaignData, name: str) -> Panel:
    """Return the panel of a share of jobs that ended, whose effect x is a difference: notified units have x more."""
    jobs, hits = data.during["jobs"], data.during[name]
    jobs_before, hits_before = data.before["jobs"].sum(axis=1), data.before[name].sum(axis=1)
    usual = float(hits_before.sum() / jobs_before.sum()) if jobs_before.sum() else 0.0
    own = (hits_before + usual * _PRIOR_JOBS) / (jobs_before + _PRIOR_JOBS)
    mean = jobs_before / max(data.before["jobs"].shape[1], 1)
    scale = np.sqrt(mean + max(float(mean.mean()), 1.0))[:, None] if len(mean) else mean[:, None]
    base = (hits - own[:, None] * jobs) / scale
    slope = -exposed(data.notified_from, data.looks) * jobs / scale
    return Panel(base, slope, data.notified_from, (mean[:, None] / scale), data.known)
