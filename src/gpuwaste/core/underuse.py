"""The rule of under-use, when the GPUs of a run count as hardly used: the same for reports, labels and scores.

Source: Ashworth, 2025: a mean utilization below 5 % in a job that ran for more than 30 seconds and completed; that 80 %
of the allocation have to be known is ours. A site sets all three in [hub]; counts, models and scores record the rule
that they used.
"""

from dataclasses import dataclass
from typing import Annotated, Final

from msgspec import Meta


@dataclass(frozen=True, slots=True)
class UnderUse:
    """The limits."""

    below_pct: Annotated[float, Meta(description="Mean utilization below which a GPU is under-used, percent.")] = 5.0
    min_s: Annotated[float, Meta(description="Runs up to this long are not judged, seconds.")] = 30.0
    min_coverage: Annotated[float, Meta(description="Minimum known share of the allocation, 0 to 1.")] = 0.8

    @property
    def below_ratio(self) -> float:
        """The limit of the mean as a share of 1."""
        return self.below_pct / 100

    @property
    def text(self) -> str:
        """The rule as a text."""
        return f"mean below {self.below_pct:g} %, over {self.min_s:g} s, {self.min_coverage:.0%} known"

    def parameters(self) -> dict[str, float]:
        """Return the rule as parameters of the queries that use it."""
        return {
            "active_pct": self.below_pct,
            "underused_ratio": self.below_ratio,
            "min_run_s": self.min_s,
            "min_coverage": self.min_coverage,
        }


UNDER_USE: Final = UnderUse()  # also for what was recorded without a rule
