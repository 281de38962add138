"""The rule itself: what a comparison has to show for a promotion, and for a rollback. Plain values in and out."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from gpuwaste.advice.predict.comparison import PairedComparison
from gpuwaste.advice.renewal.renewal_settings import CONFIDENCE, MARGIN
from gpuwaste.core.advice_config import ModelsConfig


@dataclass(frozen=True, slots=True)
class RenewalDecision:
    """Whether to change the model in use, and why or why not."""

    change: bool
    reason: str


def promotion(found: Mapping[str, PairedComparison], rule: ModelsConfig) -> RenewalDecision:
    """Decide on a challenger, the second of each comparison: better in every target that decides, worse in no other."""
    if lacking := list(_lacking(found, rule)):
        return RenewalDecision(change=False, reason=f"not enough outcomes: {'; '.join(lacking)}")
    for target in rule.targets:
        one = found[target]
        gain, share = one.average_precision, one.average_precision.share_above(MARGIN)
        if share < CONFIDENCE:
            return RenewalDecision(
                change=False,
                reason=f"{target}: average precision {gain.first:.3f} -> {gain.second:.3f}, better by {MARGIN:g} "
                f"in {share:.0%} of the draws, {CONFIDENCE:.0%} needed",
            )
        if one.brier.share_above(0.0) >= CONFIDENCE:
            return RenewalDecision(
                change=False, reason=f"{target}: ranks better, but its probabilities are worse (Brier)"
            )
    for target, one in found.items():
        if _enough(one, rule) and one.average_precision.share_below(MARGIN) >= CONFIDENCE:
            return RenewalDecision(change=False, reason=f"{target}: worse by {MARGIN:g}")
    return RenewalDecision(change=True, reason="; ".join(_told(found, rule)))


def rollback(found: Mapping[str, PairedComparison], rule: ModelsConfig) -> RenewalDecision:
    """Decide on the champion, the first of each comparison with the baseline: worse in one target that decides."""
    for target in rule.targets:
        one = found.get(target)
        if one is not None and _enough(one, rule) and one.average_precision.share_above(0.0) >= CONFIDENCE:
            gain = one.average_precision
            return RenewalDecision(
                change=True,
                reason=f"{target}: average precision {gain.first:.3f}, the baseline's {gain.second:.3f}, "
                f"{one.jobs} jobs of {one.users} users",
            )
    if lacking := list(_lacking(found, rule)):
        return RenewalDecision(change=False, reason=f"not enough outcomes: {'; '.join(lacking)}")
    return RenewalDecision(change=False, reason="not worse than the baseline")


def _lacking(found: Mapping[str, PairedComparison], rule: ModelsConfig) -> Iterator[str]:
    """Yield for each target that decides what it lacks."""
    for target in rule.targets:
        one = found.get(target)
        jobs, users = (one.jobs, one.users) if one is not None else (0, 0)
        if jobs < rule.min_outcomes:
            yield f"{target} {jobs} of {rule.min_outcomes}"
        elif users < rule.min_users:
            yield f"{target} of {users} users, {rule.min_users} needed"
        elif one is not None and 2 * len(one.average_precision.draws) < one.drawn:
            yield f"{target}: too few of one kind"


def _enough(one: PairedComparison, rule: ModelsConfig) -> bool:
    drawn = 2 * len(one.average_precision.draws) >= one.drawn
    return one.jobs >= rule.min_outcomes and one.users >= rule.min_users and drawn


def _told(found: Mapping[str, PairedComparison], rule: ModelsConfig) -> Iterator[str]:
    for target in rule.targets:
        one, gain = found[target], found[target].average_precision
        share = gain.share_above(MARGIN)
        yield (
            f"{target}: average precision {gain.first:.3f} -> {gain.second:.3f}, better by {MARGIN:g} in "
            f"{share:.0%} of the draws, {one.jobs} jobs of {one.users} users"
        )
