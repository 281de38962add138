"""Predictions as text for people: the expected outcome, reasons in the user's own numbers, the lines to change."""

from collections.abc import Sequence
from typing import Final

from msgspec import UNSET

from gpuwaste.advice.predict.prediction_types import (
    PredictDocument,
    PredictionsDocument,
    RequestChange,
    TargetPrediction,
)
from gpuwaste.core.text import harmless
from gpuwaste.core.units import format_duration, format_size, say_duration, say_percent
from gpuwaste.jobs.program_estimate import program_lines
from gpuwaste.jobs.verdict import TOLD
from gpuwaste.show.layout import Look
from gpuwaste.show.terminal_cells import UNKNOWN, fit, percent, uncut
from gpuwaste.slurm.submit.job_request import JobRequest

_NAMES: Final = {
    "failure": "Fails",
    "failure_or_cancel": "Fail/cancel",
    "timeout": "Timeout",
    "walltime": "Run time",
    "memory": "Memory",
    "gpu_underused": "GPUs idle",
    "gpus_needed": "GPUs used",
}
_LEVELS: Final = {"warn": "above the warn threshold", "reject": "above the reject threshold"}
_REASONS: Final = {"failure": 3}  # other targets have one
_SILENT: Final = frozenset({"failure_or_cancel"})  # its reasons are those of failure
_OF_SITE: Final = frozenset({"site model", "baseline"})
_SCREEN: Final = 8  # components of a het job that are shown


def predict_text(document: PredictionsDocument, look: Look) -> str:
    """Render a predict document: each request, then notes for the reader."""
    lines: list[str] = []
    shown = document.predictions[:_SCREEN]
    for place, prediction in enumerate(shown, 1):
        last = place == len(shown)
        lines += [*_prediction(prediction, document.notes if last else (), look), ""]
    if (more := len(document.predictions) - _SCREEN) > 0:
        lines += [f"  ... and {more} more (--json prints all)", ""]
    return "\n".join(lines[:-1]) + "\n"


def _prediction(prediction: PredictDocument, notes: Sequence[str], look: Look) -> list[str]:
    request = prediction.request
    lines = look.title(f"{fit(request.name or 'job', 40)}: prediction")
    lines += look.facts(_asked(request))
    targets = prediction.targets
    if targets:
        lines += look.heading(f"Prediction by {_who(prediction)}")
        lines += [_target(target, look, own=prediction.own_history) for target in targets]
    if prediction.program is not UNSET:
        lines += [*look.heading("The program"), *program_lines([("", prediction.program)], look.prose)]
    lines += _reasons(targets, look)
    if prediction.changes:
        lines += look.heading("What you can change")
        lines += [line for change in prediction.changes for line in _change(change, look)]
    lines += _said(prediction, look)
    noted = [line for note in (*prediction.notes, *notes) for line in look.bullet(harmless(note))]
    return [*lines, *look.heading("Notes"), *noted] if noted else lines


def _who(prediction: PredictDocument) -> str:
    if not prediction.model:
        return "your own history"
    return f"model {uncut(prediction.model)} ({prediction.model_hash[:12]})"


def _asked(request: JobRequest) -> list[tuple[str, str]]:
    limit, memory = request.time_limit_s, request.mem_b
    gpus = f"{request.gpus} {fit(request.gpu_type, 16)}".strip()
    return [
        ("User", fit(request.user or UNKNOWN, 24)),
        ("Account", fit(request.account or UNKNOWN, 24)),
        ("Partition", fit(request.partition or UNKNOWN, 24)),
        ("Time limit", format_duration(limit) if limit else UNKNOWN),
        ("Nodes, CPUs", f"{request.nodes or UNKNOWN}, {request.cpus or UNKNOWN}"),
        ("Memory", format_size(memory) if memory else UNKNOWN),
        ("GPUs", gpus),
        ("Array", "yes" if request.is_array else "no"),
    ]


def _target(target: TargetPrediction, look: Look, *, own: bool) -> str:
    """Return one line; it has a bar only if the probability is based on jobs of the user."""
    name = _NAMES.get(target.target, fit(target.target, 12))
    if target.p is None:
        return fit(f"  {name:<12}{_quantiles(target)}", look.prose)
    if not own and target.source in _OF_SITE:
        return f"  {name:<12}{percent(target.p)} of similar jobs at this site (no earlier job of yours is known)"
    said = _LEVELS.get(target.level, "")
    if target.source == "history":
        said = f"of your last {target.basis}" if target.basis > 1 else "of your last job"
    return look.measure(name, target.p, said, bad=True)


def _quantiles(target: TargetPrediction) -> str:
    """Return the lowest and the highest level, such as "median 26 min, 99th percentile 40 min"."""
    levels = sorted(target.quantiles, key=float)
    shown = [levels[0], levels[-1]] if len(levels) > 1 else levels
    parts = [
        f"{'median' if float(level) == 0.5 else f'{float(level) * 100:g}th percentile'} "  # noqa: PLR2004
        f"{_amount(target.target, target.quantiles[level])}"
        for level in shown
    ]
    return ", ".join(parts)


def _amount(target: str, value: float) -> str:
    if target == "walltime":
        return say_duration(value)
    return format_size(value) if target == "memory" else f"{value:.0f}"


def _reasons(targets: Sequence[TargetPrediction], look: Look) -> list[str]:
    """Return the reasons, each sentence once; an effect is in points of the probability, or in the quantity's unit."""
    lines: list[str] = []
    told: set[str] = set()
    for target in targets:
        if target.target in _SILENT:
            continue
        for reason in target.reasons[: _REASONS.get(target.target, 1)]:
            if reason.text in told:
                continue
            told.add(reason.text)
            effect = _effect(target, reason.effect)
            lines += look.bullet(f"{harmless(reason.text)}{effect}")
    return [*look.heading("Why"), *lines] if lines else []


def _effect(target: TargetPrediction, effect: float) -> str:
    if not effect:
        return ""
    name = _NAMES.get(target.target, target.target).lower()
    if target.p is not None:
        return f" ({name} {effect * 100:+.0f} points)"
    return f" ({name} {'+' if effect > 0 else '-'}{_amount(target.target, abs(effect))})"


def _said(prediction: PredictDocument, look: Look) -> list[str]:
    """Return what sbatch would print, and for operators what a policy in shadow mode would do."""
    policy = prediction.policy
    if policy is UNSET or not policy.lines:
        return []
    if policy.action in TOLD:
        title = "sbatch would print"
    else:
        held = f"held back by {policy.held}" if policy.held else f"but its mode is {policy.mode}"
        title = f"Policy {fit(policy.policy, 30)} would {policy.would_be}, {held}"
    return [*look.heading(title), *(f"  {harmless(line)}" for line in policy.lines)]


def _change(change: RequestChange, look: Look) -> list[str]:
    risks = [
        f"{_NAMES.get(name, name).lower()} {say_percent(change.before[name])} to {say_percent(change.after[name])}"
        for name in ("failure", "timeout", "gpu_underused")
        if name in change.after
        and name in change.before
        and round(change.before[name], 2) != round(change.after[name], 2)
    ]
    text = "; ".join([harmless(change.text), *risks])
    return [*look.bullet(text), f"        {harmless(change.option)}"]
