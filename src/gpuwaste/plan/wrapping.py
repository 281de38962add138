"""The gain of wrapping short jobs into one, by the study of wrappers: the rows nearest to a fair share and a load.

The study's jobs run JOB_RUN_S; the rule is for jobs of up to twice that. Cases in which the first job started at once
are those of a machine with free CPUs, where fair share has no effect: they count if the partition has an idle node.
"""

from collections.abc import Sequence
from statistics import fmean
from typing import Final, Literal, NamedTuple

from gpuwaste.plan.wrapping_study import JOB_RUN_S, MEMBERS, ROWS

Way = Literal["vertical", "horizontal"]
LONGEST_S: Final = 2 * JOB_RUN_S
MANY: Final = MEMBERS
AFTER_END_S: Final = 30
"""Seconds that a workflow manager takes to submit the next job."""
_WORTH_IT: Final = 0.01  # of the run time: two minutes of the 3.5 h of the study's chain
_RARE: Final = 0.1  # at most this share of the cases may end later


class Gain(NamedTuple):
    """Mean, least and most gain of one job over single jobs, as shares of their run time; `longer`: share of losses."""

    cases: int
    mean: float
    least: float
    most: float
    longer: float

    @property
    def verdict(self) -> str:
        """The advice: wrapping is worth it, is not, or makes no difference."""
        if self.mean >= _WORTH_IT and self.longer <= _RARE:
            return "wrap them"
        return "keep single jobs" if self.mean <= -_WORTH_IT or self.longer > _RARE else "wrapping gains nothing"


def gain(way: Way, fair_share: float | None, *, idle: bool, pause_s: int = 0) -> Gain:
    """Return the study's gain at the nearest fair share; over all of them where it is unknown."""
    own = [
        (share, Gain(cases, *gains)) for kind, pause, share, cases, *gains in ROWS if (kind, pause) == (way, pause_s)
    ]
    if idle:
        return _together([one for share, one in own if share is None])
    nearest = None if fair_share is None else nearest_share(fair_share)
    return _together([one for share, one in own if share is not None and nearest in {None, share}])


def nearest_share(fair_share: float) -> float:
    """Return the nearest of the study's fair shares."""
    return min((row[2] for row in ROWS if row[2] is not None), key=lambda share: abs(share - fair_share))


def _together(found: Sequence[Gain]) -> Gain:
    """Return several as one; each has the same number of cases."""
    return Gain(
        sum(one.cases for one in found),
        fmean(one.mean for one in found),
        min(one.least for one in found),
        max(one.most for one in found),
        fmean(one.longer for one in found),
    )
