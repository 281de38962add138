"""What the user's own earlier jobs say of a request, where no model of the site does: counts, not estimates."""

from collections.abc import Callable
from statistics import median
from typing import Final

from gpuwaste.core.units import say_duration
from gpuwaste.predict.prediction import Reason, TargetPrediction
from gpuwaste.predict.targets import UNDERUSED_RATIO
from gpuwaste.predict.view import View
from gpuwaste.predict.wording import last_jobs, named, number

LEAST: Final = 3  # ended jobs from which a count says something
_LAST_RUNS: Final = ("run_1", "run_2", "run_3")


def from_history(target: str, view: View) -> TargetPrediction | None:
    """Return what history says of a target, None where it says nothing. Raises KeyError for an unknown target."""
    return _SAYS[target](target, view)


def _said(target: str, key: str, view: View, feature: str, text: str, **values: object) -> TargetPrediction:
    reason = Reason(f"{key}_{feature}", view.get(f"{key}_{feature}"), None, 0.0, text)
    return TargetPrediction(target, "history", view.remembered(key), reasons=(reason,), **values)  # type: ignore[arg-type]


def _failure(target: str, view: View) -> TargetPrediction | None:
    key = view.own_key(LEAST, "fails_8", "fail_rate_8")
    if key is None:
        return None
    text = f"{number(view.values[f'{key}_fails_8'])} of {last_jobs(key, view)} failed"
    return _said(target, key, view, "fails_8", text, p=view.values[f"{key}_fail_rate_8"])


def _failure_or_cancel(target: str, view: View) -> TargetPrediction | None:
    key = view.own_key(LEAST, "fails_8", "cancelled_8")
    if key is None:
        return None
    failed, cancelled = view.values[f"{key}_fails_8"], view.values[f"{key}_cancelled_8"]
    text = f"{number(failed)} of {last_jobs(key, view)} failed and {number(cancelled)} were cancelled"
    return _said(target, key, view, "cancelled_8", text, p=min(1.0, (failed + cancelled) / view.remembered(key)))


def _timeout(target: str, view: View) -> TargetPrediction | None:
    key = view.own_key(LEAST, "at_limit_8")
    if key is None:
        return None
    late = view.values[f"{key}_at_limit_8"]
    text = f"{number(late)} of {last_jobs(key, view)} ran into their limit"
    return _said(target, key, view, "at_limit_8", text, p=min(1.0, late / view.remembered(key)))


def _walltime(target: str, view: View) -> TargetPrediction | None:
    """Return the median of three, and the longest of k, which the next of k + 1 alike exceeds once in k + 1."""
    key = view.own_key(LEAST, "run_max_8", "run_min_8", *_LAST_RUNS)
    if key is None:
        return None
    count = view.remembered(key)
    low, high = view.values[f"{key}_run_min_8"], view.values[f"{key}_run_max_8"]
    middle = median(view.values[f"{key}_{name}"] for name in _LAST_RUNS)
    limit = view.request.time_limit_s
    quantiles = {"0.5": middle, f"{count / (count + 1):.2f}": high}
    if limit is not None:
        quantiles = {name: min(value, float(limit)) for name, value in quantiles.items()}
    text = f"{last_jobs(key, view)} ran {say_duration(low)} to {say_duration(high)}"
    return _said(target, key, view, "run_max_8", text, quantiles=quantiles)


def _memory(target: str, view: View) -> TargetPrediction | None:
    key = view.own_key(1, "peak_1")
    if key is None:
        return None
    peak = view.values[f"{key}_peak_1"]
    return TargetPrediction(target, "history", 1, quantiles={"0.5": peak})


def _gpu_underused(target: str, view: View) -> TargetPrediction | None:
    key = view.own_key(1, "gpu_used")
    if key is None or not view.request.gpus:
        return None
    used = view.values[f"{key}_gpu_used"]
    text = f"the GPUs of your last job{named(key, view)} were used {used:.0%} of the time"
    reason = Reason(f"{key}_gpu_used", used, None, 0.0, text)
    return TargetPrediction(target, "history", 1, p=float(used < UNDERUSED_RATIO), reasons=(reason,))


def _gpus_needed(target: str, view: View) -> TargetPrediction | None:
    key = view.own_key(1, "gpu_active")
    if key is None or not view.request.gpus:
        return None
    active = view.values[f"{key}_gpu_active"]
    text = f"your last job{named(key, view)} worked on {number(active)} {'GPU' if active == 1 else 'GPUs'}"
    reason = Reason(f"{key}_gpu_active", active, None, 0.0, text)
    quantiles = {"0.5": min(active, float(view.request.gpus))}
    return TargetPrediction(target, "history", 1, quantiles=quantiles, reasons=(reason,))


_SAYS: Final[dict[str, Callable[[str, View], TargetPrediction | None]]] = {
    "failure": _failure,
    "failure_or_cancel": _failure_or_cancel,
    "timeout": _timeout,
    "walltime": _walltime,
    "memory": _memory,
    "gpu_underused": _gpu_underused,
    "gpus_needed": _gpus_needed,
}
