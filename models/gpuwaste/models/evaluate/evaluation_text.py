"""An evaluation as tables, and as one JSON object {target: {method: {metric: value}}}."""

import math
from collections.abc import Mapping
from typing import Final

from tabulate import tabulate

from gpuwaste.advice.predict.targets import BY_NAME, Target
from gpuwaste.models.evaluate.log_evaluation import EvaluatedLog, Evaluation, Result
from gpuwaste.models.evaluate.method import OURS

JFP: Final = "JFP protocol: uses facts known only after the run; not available at submission"
PROBABILITY: Final = {
    "average_precision": "AP",
    "f1": "F1",
    "accuracy": "accuracy",
    "recall_at_precision_0.95": "recall at precision .95",
    "ece": "ECE",
    "brier": "Brier",
    "brier_by_user": "Brier, mean of users",
    "brier_worst_decile": "Brier, worst decile of users",
}
LEVEL: Final = {
    "under_rate": "under-estimated %",
    "coverage": "covered %",
    "reserved_over_used": "reserved/used",
    "reserved_over_used_unweighted": "unweighted",
    "under_rate_by_user": "under %, mean of users",
    "under_rate_worst_decile": "under %, worst decile of users",
}
_RULES: Final = {
    "accounting": "ends of earlier jobs are known from accounting",
    "submit + run": "no waits in the log: the end of an earlier job is taken to be submit + run, which is early for "
    "jobs that waited",
}


def evaluation_text(evaluation: Evaluation, form: str = "simple") -> str:
    """Return facts, a table for each target and what was left out; `form` is tabulate's, "pipe" for Markdown."""
    parts = [facts(evaluation.log, evaluation.seed)]
    for name, results in evaluation.results.items():
        if name in evaluation.same_as:
            continue
        target = BY_NAME[name]
        honest = {method: r for method, r in results.items() if not r.after_run}
        parts.append(f"{heading(evaluation.log, target, honest)}\n\n{_tabulated(*_table(target, honest), form)}\n")
        parts += [_beside(results[OURS], r, form) for r in results.values() if r.after_run]
        parts += [f"{r.title}: n/a: {r.reason}\n" for r in results.values() if r.reason]
    return "\n".join([*parts, left_out(evaluation)])


def notes(evaluation: Evaluation) -> str:
    """Return what the JSON object lacks: the facts, and what was left out, with its reason."""
    return facts(evaluation.log, evaluation.seed) + left_out(evaluation)


def left_out(evaluation: Evaluation) -> str:
    """Return a line for each target without its own table."""
    same = [f"{name}: every label is that of {other}: see there\n" for name, other in evaluation.same_as.items()]
    return "".join(same + [f"{name}: n/a: {reason}\n" for name, reason in evaluation.left_out.items()])


def evaluation_json(evaluation: Evaluation) -> dict[str, dict[str, dict[str, float | None]]]:
    """Return {target: {method: {metric: value}}}; "_low" and "_high" after a metric are its 95 % interval.

    A value that does not exist is null, never NaN.
    """
    return {
        target: {method: _numbers(result) for method, result in results.items()}
        for target, results in evaluation.results.items()
    }


def facts(log: EvaluatedLog, seed: int) -> str:
    """Return the basis of the figures, as lines."""
    outcomes = ", ".join(f"{count} {name.lower().replace('_', ' ')}" for name, count in log.outcomes.items())
    status = "" if log.has_status else "; no status: walltime only"
    return (
        f"{log.name}: {log.jobs} jobs of {log.users} users ({outcomes}){status}\n"
        f"split by time 60/10/30: {log.learn} learnt from, {log.validate} for validation, {log.test} judged; "
        f"{log.unknown_yet} had not ended when the next part began and are left out; seed {seed}\n"
        f"{_RULES[log.end_rule]}\n"
        "[ ]: 95 % interval, bootstrapped by user\n"
    )


def heading(log: EvaluatedLog, target: Target, results: Mapping[str, Result]) -> str:
    """Return a table's heading: the target, its rows, its rule of ends."""
    found = next((r.figures for r in results.values() if r.figures), None)
    size = f"{found['jobs'].value:.0f} jobs of {found['users'].value:.0f} users" if found else "no figures"
    rate = f", {100 * found['base_rate'].value:.1f} % yes" if found and "base_rate" in found else ""
    return f"{target.name} ({target.text}): {size}{rate}; ends: {log.end_rule}"


def _beside(ours: Result, late: Result, form: str) -> str:
    """Return our figures and those with facts known only after the run, in two titled columns."""
    rows = [[title, cell(ours, name), cell(late, name)] for name, title in PROBABILITY.items()]
    return f"{JFP}\n\n{_tabulated(rows, ['', 'at submission: model', late.title], form)}\n"


def _tabulated(rows: list[list[str]], heads: list[str], form: str) -> str:
    return str(tabulate(rows, heads, tablefmt=form, disable_numparse=True))


def _table(target: Target, results: Mapping[str, Result]) -> tuple[list[list[str]], list[str]]:
    if target.kind == "probability":
        rows = [[r.title, *(cell(r, name) for name in PROBABILITY)] for r in results.values()]
        return rows, ["method", *PROBABILITY.values()]
    rows = []
    for result in results.values():
        for level in levels_of(result):
            rows.append([result.title, aim(level), *(cell(result, name + level) for name in LEVEL)])
    return rows, ["method", "aim %", *LEVEL.values()]


def levels_of(result: Result) -> list[str]:
    """Return the suffixes of a result's levels, "" for a method without a target level."""
    return [name.removeprefix("coverage") for name in result.figures if name.startswith("coverage")] or [""]


def aim(level: str) -> str:
    """Return the share of under-estimates that a level aims at, as a percentage; - without a level."""
    return f"{100 * (1 - float(level.removeprefix('_'))):.3g}" if level else "-"


def cell(result: Result, name: str) -> str:
    """Return a figure with its interval, n/a if there is none."""
    figure = result.figures.get(name)
    if figure is None or not math.isfinite(figure.value):
        return "n/a"
    if not math.isfinite(figure.low):
        return _number(name, figure.value)
    return f"{_number(name, figure.value)} [{_number(name, figure.low)}, {_number(name, figure.high)}]"


def _number(name: str, value: float) -> str:
    if name.startswith(("under_rate", "coverage")):
        return f"{100 * value:.1f}"
    return f"{value:.2f}" if name.startswith("reserved") else f"{value:.3f}"


def _numbers(result: Result) -> dict[str, float | None]:
    values: dict[str, float | None] = {}
    for name, figure in result.figures.items():
        values[name] = _json(figure.value)
        if math.isfinite(figure.low):
            values |= {f"{name}_low": _json(figure.low), f"{name}_high": _json(figure.high)}
    return values


def _json(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
