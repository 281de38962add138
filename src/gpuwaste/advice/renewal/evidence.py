"""From the store's pairs of probabilities to comparisons by target, and from these to what events and readers get."""

import json
import math
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, Final

import numpy as np

from gpuwaste.advice.predict.bundle_files import BundleFiles
from gpuwaste.advice.predict.comparison import PairedComparison, compare
from gpuwaste.jobs.events.kinds.model import TargetEvidence

_FIGURES: Final = ("jobs", "users", "base_rate", "average_precision", "recall_at_precision_0.95", "f1", "ece", "note")
_CARD: Final = ("jobs", "users", "window_utc", "source", "warnings", "left_out")


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
    """Return comparisons as events carry them."""
    return tuple(_one(target, one, margin) for target, one in sorted(found.items()))


def card_of(files: BundleFiles) -> dict[str, Any]:
    """Return the main figures of a bundle's card, empty where it has none that can be read."""
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
