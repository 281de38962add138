"""A card as Markdown, from its document: what a sysadmin reads before promoting a bundle."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, Final

from msgspec import UNSET, UnsetType
from tabulate import tabulate

from gpuwaste.advice.renewal.card_types import (
    CardByUser,
    CardFigures,
    CardInterval,
    CardPoint,
    CardSearch,
    CardTarget,
    ModelCard,
)

_POINTS: Final = {
    "warn": "warn (recall counts twice)",
    "f1": "best F1",
    "reject": "reject (precision 0.95 on validation)",
}


def card_text(card: ModelCard, plots: Iterable[str]) -> str:
    """Return card.md; `plots` are the SVG files in the same directory."""
    files = sorted(plots)
    parts = [f"# {card.name}", _about(card), _jobs(card), _how(card), _summary(card)]
    parts += [_target(name, target, files) for name, target in card.targets.items()]
    parts += [_left_out(card), _parity(card), "## What it must not be used for", _list(card.not_for)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _about(card: ModelCard) -> str:
    return (
        f"A model of the jobs of cluster {card.cluster or '(unnamed)'}, made {_time(card.created_utc)} by "
        f"`gpuwaste model train` from {card.source}. Every figure below is of jobs that it had not seen."
    )


def _jobs(card: ModelCard) -> str:
    first, last = card.window_utc
    rows = [
        ("jobs", card.jobs),
        ("users", card.users),
        ("submitted from", _time(first)),
        ("to", _time(last)),
        ("the end of a job", "as in accounting" if card.end_rule == "accounting" else card.end_rule),
        *((what, count) for what, count in card.left.items() if count),
        ("features", f"{card.features} (version {card.feature_version})"),
    ]
    lines = ["## What it learnt from", _table(("", ""), rows), f"Labels: {card.label_rule}."]
    return "\n\n".join([*lines, _list(card.warnings)] if card.warnings else lines)


def _how(card: ModelCard) -> str:
    settings, split = card.settings, card.split
    figures = (
        f"Jobs in the order of submission: {split.train:.0%} to learn from, {split.validation:.0%} to calibrate "
        f"and to choose thresholds by, the last {split.test:.0%} to judge by, used once. A job's history holds "
        "only jobs that had ended when it was submitted, and so do the rolling corrections that the figures include. "
        "Parameters were searched on folds in time of only the first part: "
        f"{settings.trials} trials a target, seed {settings.seed}. Intervals are 95 %, by bootstrap over users."
    )
    shipped = (
        "What is shipped was then learnt with the same parameters from all but the last "
        f"{split.last_calibration:.0%} of the jobs, and calibrated on these. So no job is left to judge the shipped "
        "model itself by: the figures are of the one learnt from the first part, which had fewer and older jobs."
    )
    return f"## How the figures came about\n\n{figures}\n\n{shipped}"


def _summary(card: ModelCard) -> str:
    rows = [_summary_row(name, target) for name, target in card.targets.items()]
    return "## In short\n\n" + _table(("target", "what", "test jobs", "figure", "value (95 %)"), rows)


def _summary_row(name: str, target: CardTarget) -> tuple[str, ...]:
    figure, value = headline(target)
    return name, target.text, str(target.test.jobs), figure, value


def headline(target: CardTarget) -> tuple[str, str]:
    """Return the one figure that represents a target, with its name."""
    test = target.test
    if test.average_precision:
        return "average precision", f"{_interval(test.average_precision)}, base rate {_number(test.base_rate)}"
    if test.quantiles:
        return "jobs above q = 0.95", _interval(test.quantiles["0.95"].under_rate)
    return "none", test.note or ""


def _target(name: str, target: CardTarget, files: Iterable[str]) -> str:
    test = target.test
    parts = [f"## {name}: {target.text}", _learnt(target)]
    if test.note:
        parts.append(f"Test part: {test.note}.")
    if test.ece:
        parts += _probability(test)
    if test.quantiles:
        parts += _quantiles(target, test)
    parts += [f"![{file}]({file})" for file in files if file.startswith(f"{name}.")]
    parts += [_importance(target), _search(target.search)]
    return "\n\n".join(part for part in parts if part)


def _learnt(target: CardTarget) -> str:
    rate, points = target.base_rate, target.thresholds
    text = f"Learnt from {target.jobs_learnt_from} jobs ({target.jobs_learnt_from_for_the_figures} for the figures)"
    text += f", of which {rate:.1%} are positive." if rate is not None else "."
    shipped = ", ".join(f"{name} from {at:.3f} on" for name, at in sorted(points.items()))
    return f"{text} The shipped model's own points: {shipped}." if points else text


def _probability(test: CardFigures) -> Iterator[str]:
    named = {
        "average precision": test.average_precision,
        "F1": test.f1,
        "recall at precision 0.95 (best threshold of the test part)": test.recall_at_precision,
        "calibration error (ECE, 15 bins)": test.ece,
    }
    rows = [("base rate", _number(test.base_rate))]
    rows += [(text, _interval(found)) for text, found in named.items() if found]
    rows.append(("the same without rolling correction", _number(test.ece_uncorrected)))
    if test.brier_by_user:
        rows.append(_by_user("Brier score", test.brier_by_user))
    yield _table(("on the test part", f"{test.jobs} jobs of {test.users} users"), rows)
    points = test.operating_points or {}
    if points:
        head = ("operating point", "p from", "jobs", "precision (95 %)", "recall (95 %)")
        yield _table(head, [_point(name, point) for name, point in points.items()])
    if "reject" not in points:
        yield "There is no point to reject from: validation did not support a precision of 0.95."


def _point(name: str, point: CardPoint) -> tuple[str, ...]:
    named = f"{point.jobs} ({point.share:.1%})"
    return _POINTS[name], f"{point.threshold:.3f}", named, _interval(point.precision), _interval(point.recall)


def _quantiles(target: CardTarget, test: CardFigures) -> Iterator[str]:
    rows = [
        (q, f"{1 - float(q):.3g}", _interval(level.under_rate), _interval(level.reserved_over_used))
        for q, level in (test.quantiles or {}).items()
    ]
    if test.request:
        rows.append(("as requested", "", "", _number(test.request.reserved_over_used)))
    yield _table(("quantile", "share above it, aimed at", "measured (95 %)", "reserved over used (95 %)"), rows)
    if test.under_rate_by_user:
        mean, worst = _by_user("share of jobs above q = 0.95", test.under_rate_by_user)
        yield f"{test.jobs} jobs of {test.users} users, in {target.unit}; {mean}: {worst}."


def _by_user(what: str, pair: CardByUser) -> tuple[str, str]:
    return (
        f"{what}, mean over users",
        f"{_number(pair.mean)}; the worst tenth of users {_number(pair.worst_decile)}",
    )


def _importance(target: CardTarget) -> str:
    rows = [(f"`{f.feature}`", f.text, f"{f.share_of_gain:.1%}") for f in target.importance]
    return "What it looks at, by share of the gain in its trees:\n\n" + _table(("feature", "in words", "share"), rows)


def _search(search: CardSearch) -> str:
    if not search.trials:
        return f"Search: {search.note}; learnt with the defaults."
    trials = f"{search.trials} trial{'s' if search.trials > 1 else ''} on {search.folds} folds"
    scores = f"score {search.score_of_defaults or 0.0:.4f} with the defaults, {search.best_score or 0.0:.4f} at best"
    kept = "a trial that beat them" if search.changed else "the defaults, which no trial beat in most folds"
    params = ", ".join(f"{name} {value:.4g}" for name, value in (search.params or {}).items())
    return f"Search: {trials}; {scores}; chosen: {kept} ({params})."


def _left_out(card: ModelCard) -> str:
    if not card.left_out:
        return ""
    return "## Targets left out\n\n" + _list(f"{name}: {why}." for name, why in card.left_out.items())


def _parity(card: ModelCard) -> str:
    rows = [(name, p.rows, p.real, f"{p.max_difference:.2g}", p.flips) for name, p in card.parity.items()]
    head = ("target", "rows compared", "real ones", "largest difference", "flips at thresholds")
    return "## XGBoost and ONNX Runtime agree\n\n" + _table(head, rows)


def _table(head: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    cells = [[str(cell).replace("|", "\\|") for cell in row] for row in rows]
    return tabulate(cells, headers=list(head), tablefmt="github", disable_numparse=True)


def _list(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _interval(found: CardInterval) -> str:
    return f"{_number(found.value)} ({_number(found.low)} to {_number(found.high)})"


def _number(value: float | UnsetType | None) -> str:
    return "-" if value is None or value is UNSET else f"{value:.3f}"


def _time(utc_s: int) -> str:
    try:
        return datetime.fromtimestamp(utc_s, UTC).strftime("%Y-%m-%d %H:%M UTC")
    except (ValueError, OverflowError, OSError):
        return f"second {utc_s}"
