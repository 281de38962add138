"""The score of verdicts: precision, recall and calibration of what was really said, by policy and week.

A hit is defined in core/hits.py. Precision is of the verdicts that warned or rejected, or would have in shadow mode or
without a budget: hits over those with an outcome. What was really rejected has none; the would-be rejects that passed
at random stand for it. Recall is the share of the verdicts whose job went wrong (a target that the policy named at
least once came true) that had named it. The calibration error is the mean distance, over ten bins of the probability,
between what was expected and what came true.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

SCHEMA: Final = 1
_BINS: Final = 10
_COUNTS: Final = (
    *("n", "annotated", "warned", "rejected", "sampled", "sampled_judged", "sampled_hits", "would_say", "judged"),
    *("hits", "went_wrong", "found", "overrides", "overrides_judged", "overrides_hits", "floored", "open", "no_job"),
)


def score_document(
    weeks: Sequence[Mapping[str, Any]], bins: Sequence[Mapping[str, Any]], *, since: int, now: int
) -> dict[str, Any]:
    """Return the document from the rows of the store (queries verdicts_weeks, verdicts_bins); times are UTC seconds."""
    policies = sorted({row["policy"] for row in weeks})
    by_week = [
        {
            "policy": row["policy"],
            "week": row["week"],
            **_rates([row]),
            "ece": _errors(_of(bins, row, "policy", "week")),
        }
        for row in weeks
    ]
    by_policy = [
        {
            "policy": name,
            **_rates([row for row in weeks if row["policy"] == name]),
            "ece": _errors(_of(bins, {"policy": name}, "policy")),
        }
        for name in policies
    ]
    return {
        "document": "score",
        "schema": SCHEMA,
        "recorded": False,
        "generated": now,
        "since": since,
        "weeks": by_week,
        "policies": by_policy,
        "calibration": [_calibration(target, rows) for target, rows in _by_target(bins).items()],
        "standing": {row["policy"]: {"precision": row["precision"], "n": row["judged"]} for row in by_policy},
    }


def _rates(rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the sums of counts, and the ratios of the sums."""
    found = list(rows)
    sums = {name: sum(int(row[name]) for row in found) for name in _COUNTS}
    return {
        **sums,
        "false_rejects": sums["sampled_judged"] - sums["sampled_hits"],
        "precision": _ratio(sums["hits"], sums["judged"]),
        "reject_precision": _ratio(sums["sampled_hits"], sums["sampled_judged"]),
        "recall": _ratio(sums["found"], sums["went_wrong"]),
    }


def _ratio(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None


def _of(bins: Iterable[Mapping[str, Any]], row: Mapping[str, Any], *names: str) -> list[Mapping[str, Any]]:
    return [b for b in bins if all(b[name] == row[name] for name in names)]


def _by_target(bins: Iterable[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    found: dict[str, list[Mapping[str, Any]]] = {}
    for row in bins:
        found.setdefault(row["target"], []).append(row)
    return dict(sorted(found.items()))


def _errors(bins: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """Return the expected calibration error of each target."""
    return {target: _calibration(target, rows)["ece"] for target, rows in _by_target(bins).items()}


def _calibration(target: str, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    counts, expected, true = [0] * _BINS, [0.0] * _BINS, [0.0] * _BINS
    for row in rows:
        place = int(row["bin"])
        counts[place] += int(row["n"])
        expected[place] += float(row["sum_p"])
        true[place] += float(row["sum_true"])
    total = sum(counts)
    distances = sum(abs(e - t) for e, t in zip(expected, true, strict=True))
    return {
        "target": target,
        "n": total,
        "ece": round(distances / total, 4) if total else 0.0,
        "bins": [_bin(place, *sums) for place, sums in enumerate(zip(counts, expected, true, strict=True)) if sums[0]],
    }


def _bin(place: int, n: int, expected: float, true: float) -> dict[str, float]:
    ends = {"from": place / _BINS, "to": (place + 1) / _BINS}
    return {**ends, "n": n, "expected": round(expected / n, 4), "true": round(true / n, 4)}
