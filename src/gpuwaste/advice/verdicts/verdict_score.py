"""The score of verdicts: precision, recall and calibration of the advice given, by policy and week.

A hit is defined in verdicts/hits.py. Precision is of the verdicts that warned or rejected, or would have in shadow mode
or without a budget: hits over those with an outcome. Rejected jobs have no outcome; the would-be rejects that passed at
random represent them. Recall is the share of the verdicts whose job went wrong (a target that the policy named at least
once came true) that had named it. The calibration error is the mean distance, over ten bins of the probability, between
prediction and outcome. Start coverage is the share of expected starts whose 80 % interval held.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct, field, structs, to_builtins

from gpuwaste.core.fields import Document, Table
from gpuwaste.core.underuse import UnderUse

SCHEMA: Final = 1
_BINS: Final = 10
_Ratio = Annotated[float | None, Meta(description="0 to 1; null without any.")]


class PolicyScore(Struct, kw_only=True, frozen=True):
    """The decisions of one policy, in numbers of verdicts and ratios of them."""

    policy: str
    n: Annotated[int, Meta(description="All verdicts.")]
    annotated: int
    warned: int
    rejected: int
    sampled: Annotated[int, Meta(description="Would-be rejects that passed at random.")]
    sampled_judged: Annotated[int, Meta(description="Those of them that have an outcome.")]
    sampled_hits: int
    would_say: Annotated[int, Meta(description="Warnings and rejects without mode and budget.")]
    judged: Annotated[int, Meta(description="Those of them that have an outcome.")]
    hits: int
    went_wrong: Annotated[int, Meta(description="Verdicts whose job went wrong.")]
    found: Annotated[int, Meta(description="Those of them that predicted it.")]
    overrides: int
    overrides_judged: int
    overrides_hits: int
    floored: Annotated[int, Meta(description="Verdicts held back because the policy was below its floor.")]
    starts: Annotated[int, Meta(description="Verdicts with an expected start whose job has started.")] = 0
    starts_within: Annotated[int, Meta(description="Those of them that started in their 80 % interval.")] = 0
    open: Annotated[int, Meta(description="Verdicts whose job has not ended.")]
    no_job: Annotated[int, Meta(description="Verdicts without a job.")]
    false_rejects: Annotated[int, Meta(description="Would-be rejects that passed at random and ended well.")]
    precision: _Ratio
    reject_precision: _Ratio
    recall: _Ratio
    start_coverage: _Ratio = None
    ece: Annotated[Mapping[str, float], Meta(description="Expected calibration error by target.")]


class WeekScore(PolicyScore, kw_only=True, frozen=True):
    """The decisions of one policy in one ISO week."""

    week: str


class CalibrationBin(Struct, frozen=True):
    """The verdicts whose probability was in one tenth."""

    from_: Annotated[float, Meta(description="Probability, 0 to 1.")] = field(name="from")
    to: Annotated[float, Meta(description="Probability, 0 to 1.")]
    n: int
    expected: Annotated[float, Meta(description="The mean probability.")]
    true: Annotated[float, Meta(description="The share that came true.")]


class Calibration(Struct, frozen=True):
    """How far the probabilities of one target were from what came true."""

    target: str
    n: int
    ece: Annotated[float, Meta(description="The expected calibration error.")]
    bins: list[CalibrationBin]


class Standing(Struct, frozen=True):
    """How good a policy's warnings and rejects were over the requested time."""

    precision: Annotated[float | None, Meta(description="Hits over those with an outcome, 0 to 1; null without any.")]
    n: Annotated[int, Meta(description="How many it is based on.")]


_COLUMNS: Final = (
    *("policy", "week", "n", "annotated", "warned", "rejected", "sampled", "sampled_judged", "sampled_hits"),
    *("false_rejects", "reject_precision", "would_say", "judged", "hits", "precision", "went_wrong", "found", "recall"),
    *("overrides", "overrides_judged", "overrides_hits", "floored", "open", "no_job"),
)


class ScoreDocument(Document, kw_only=True, frozen=True):
    """Precision, recall and calibration of the advice given: docs/how-to/audit.md."""

    document: Literal["score"] = "score"
    schema: int = SCHEMA
    recorded: bool = False
    generated: Annotated[int, Meta(description="UTC seconds.")]
    since: Annotated[int, Meta(description="UTC seconds.")]
    under_use: Annotated[UnderUse, Meta(description="The rule by which verdicts about GPUs are scored.")]
    weeks: Annotated[list[WeekScore], Meta(description="By policy and ISO week.")]
    policies: Annotated[list[PolicyScore], Meta(description="By policy, over all weeks.")]
    calibration: Annotated[list[Calibration], Meta(description="By target.")]
    standing: Mapping[str, Standing]

    def table(self, _: str = "") -> Table:
        """Return the weeks."""
        return _COLUMNS, map(to_builtins, self.weeks)


_DERIVED: Final = {"policy", "false_rejects", "precision", "reject_precision", "recall", "start_coverage", "ece"}
_COUNTS: Final = tuple(part.name for part in structs.fields(PolicyScore) if part.name not in _DERIVED)


def score_document(
    weeks: Sequence[Mapping[str, Any]], bins: Sequence[Mapping[str, Any]], under_use: UnderUse, *, since: int, now: int
) -> ScoreDocument:
    """Return the document from the rows of the store (queries verdicts_weeks, verdicts_bins); times are UTC seconds.

    `under_use` is the rule by which the store judged.
    """
    by_week = [
        WeekScore(
            policy=row["policy"], week=row["week"], **_rates([row]), ece=_errors(_of(bins, row, "policy", "week"))
        )
        for row in weeks
    ]
    by_policy = [
        PolicyScore(
            policy=name,
            **_rates([row for row in weeks if row["policy"] == name]),
            ece=_errors(_of(bins, {"policy": name}, "policy")),
        )
        for name in sorted({row["policy"] for row in weeks})
    ]
    return ScoreDocument(
        generated=now,
        since=since,
        under_use=under_use,
        weeks=by_week,
        policies=by_policy,
        calibration=[_calibration(target, rows) for target, rows in _by_target(bins).items()],
        standing={row.policy: Standing(row.precision, row.judged) for row in by_policy},
    )


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
        "start_coverage": _ratio(sums["starts_within"], sums["starts"]),
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
    return {target: _calibration(target, rows).ece for target, rows in _by_target(bins).items()}


def _calibration(target: str, rows: Sequence[Mapping[str, Any]]) -> Calibration:
    counts, expected, true = [0] * _BINS, [0.0] * _BINS, [0.0] * _BINS
    for row in rows:
        place = int(row["bin"])
        counts[place] += int(row["n"])
        expected[place] += float(row["sum_p"])
        true[place] += float(row["sum_true"])
    total = sum(counts)
    distances = sum(abs(e - t) for e, t in zip(expected, true, strict=True))
    bins = [
        CalibrationBin(place / _BINS, (place + 1) / _BINS, n, round(p / n, 4), round(came / n, 4))
        for place, (n, p, came) in enumerate(zip(counts, expected, true, strict=True))
        if n
    ]
    return Calibration(target, total, round(distances / total, 4) if total else 0.0, bins)
