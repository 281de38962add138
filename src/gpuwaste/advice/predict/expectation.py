"""A prediction as policies and texts take it: Expectation and Suggestion of policy.facts."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from gpuwaste.advice.policy.facts import Expectation, Suggestion
from gpuwaste.advice.predict.prediction import RequestChange, TargetPrediction

_KINDS: Final = {"gpus": "gpus", "mem_b": "memory", "time_limit_s": "time_limit"}  # amount -> file of predict/changes
# Features whose sentence counts what a sentence of the user's own runs counts better.
_COUNTED: Final = {
    "failure": ("name_failed", "name_fail_"),
    "failure_or_cancel": ("name_failed", "name_fail_"),
    "gpus_needed": ("name_gpu_",),
    "gpu_underused": ("name_gpu_",),
}


def expectations(
    said: Iterable[TargetPrediction], own: Mapping[str, Sequence[str]] | None = None
) -> tuple[Expectation, ...]:
    """Return what is said of each target, with the sentences of predict.own before the model's reasons."""
    return tuple(_expectation(target, tuple((own or {}).get(target.target, ()))) for target in said)


def suggestions(changes: Iterable[RequestChange]) -> tuple[Suggestion, ...]:
    """Return the changes with what each saves: GPUs, bytes, or seconds of limit."""
    found = []
    for change in changes:
        for amount, kind in _KINDS.items():
            if amount in change.before and amount in change.after:
                saves = change.before[amount] - change.after[amount]
                found.append(Suggestion(kind, change.option, change.text, saves))
    return tuple(found)


def _expectation(said: TargetPrediction, own: tuple[str, ...]) -> Expectation:
    told = _COUNTED.get(said.target, ()) if own else ()
    why = own + tuple(reason.text for reason in said.reasons if not reason.feature.startswith(told))
    return Expectation(said.target, said.source, said.basis, said.p, said.level, said.quantiles, why)
