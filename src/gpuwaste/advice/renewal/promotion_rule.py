"""The conditions of a promotion or a rollback, and the comparisons from the store's pairs."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

import numpy as np

from gpuwaste.advice.predict.manifest import BundleFiles
from gpuwaste.advice.predict.model_comparison import PairedComparison, compare
from gpuwaste.advice.renewal.trial_types import CONFIDENCE, MARGIN
from gpuwaste.core.advice_config import ModelsConfig
from gpuwaste.core.units import say_percent
from gpuwaste.jobs.events.kinds.model import TargetEvidence

_FIGURES: Final = ("jobs", "users", "base_rate", "average_precision", "recall_at_precision_0.95", "f1", "ece", "note")
_CARD: Final = ("jobs", "users", "window_utc", "source", "warnings", "left_out")


@dataclass(frozen=True, slots=True)
class RenewalDecision:
    """Whether to change the model in use, and why or why not."""

    change: bool
    reason: str


def promotion(found: Mapping[str, PairedComparison], rule: ModelsConfig) -> RenewalDecision:
    """Decide on a challenger, the second of each comparison: better in every deciding target, worse in no other."""
    if lacking := list(_lacking(found, rule)):
        return RenewalDecision(change=False, reason=f"not enough outcomes: {'; '.join(lacking)}")
    for target in rule.targets:
        one = found[target]
        gain, share = one.average_precision, one.average_precision.share_above(MARGIN)
        if share < CONFIDENCE:
            return RenewalDecision(
                change=False,
                reason=f"{target}: average precision {gain.first:.3f} -> {gain.second:.3f}, better by {MARGIN:g} "
                f"in {say_percent(share)} of the draws, {say_percent(CONFIDENCE)} needed",
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
    """Decide on the champion, the first of each comparison with the baseline: worse in one deciding target."""
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
    """Yield what each deciding target lacks."""
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
            f"{say_percent(share)} of the draws, {one.jobs} jobs of {one.users} users"
        )


def comparisons(pairs: Sequence[Mapping[str, Any]]) -> dict[str, PairedComparison]:
    """Return the comparison of each target from rows of the query verdicts_pairs."""
    found = {}
    for target, rows in groupby(pairs, key=lambda row: str(row["target"])):
        listed = list(rows)
        _, users = np.unique([row["user"] for row in listed], return_inverse=True)
        came, p, beside = (np.array([float(row[name]) for row in listed]) for name in ("came", "p", "beside"))
        found[target] = compare(came, p, beside, users)
    return found


def evidence(found: Mapping[str, PairedComparison], margin: float) -> tuple[TargetEvidence, ...]:
    """Return comparisons in the form that events have."""
    return tuple(_one(target, one, margin) for target, one in sorted(found.items()))


def card_of(files: BundleFiles) -> dict[str, Any]:
    """Return the main figures of a bundle's card, empty if it has none that can be read."""
    try:
        card = json.loads(files[1]["card.json"])
        targets = {
            name: {key: one["test"][key] for key in _FIGURES if key in one["test"]}
            for name, one in card["targets"].items()
        }
        return {key: card[key] for key in _CARD} | {"targets": targets}
    except (KeyError, ValueError, TypeError, AttributeError, RecursionError):
        return {}


def _one(target: str, one: PairedComparison, margin: float) -> TargetEvidence:
    precision, brier = one.average_precision, one.brier
    return TargetEvidence(
        target=target,
        jobs=one.jobs,
        users=one.users,
        positives=one.positives,
        model_ap=_finite(precision.first),
        other_ap=_finite(precision.second),
        gain=_finite(precision.difference),
        low=_finite(precision.low),
        high=_finite(precision.high),
        better=round(precision.share_above(margin), 4),
        model_brier=_finite(brier.first),
        other_brier=_finite(brier.second),
    )


def _finite(value: float) -> float | None:
    return round(value, 5) if math.isfinite(value) else None
