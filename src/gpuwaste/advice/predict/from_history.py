"""Predictions from a user's own earlier jobs, without a model of the site: counts, and sentences with exact numbers.

Advice at sbatch begins with these sentences.
"""

from collections.abc import Callable, Mapping
from statistics import median
from typing import Final

import numpy as np

from gpuwaste.advice.predict.prediction_types import Reason, TargetPrediction
from gpuwaste.advice.predict.vector_words import (
    COMPLETED,
    FAILED,
    GPU_ACTIVE,
    GPU_USED,
    LAST_RUNS,
    LATE,
    LONGEST,
    PEAK,
    VectorView,
    last_jobs,
    named,
    number,
    span,
)
from gpuwaste.core.underuse import UnderUse
from gpuwaste.core.units import say_percent
from gpuwaste.jobs.history.recall import OwnRun, Recall
from gpuwaste.slurm.submit.job_request import JobRequest

LEAST: Final = 3  # fewest ended jobs for a count
_USUAL: Final = 5  # ended jobs that make a habit
_PEAKS: Final = 3  # jobs that the feature covers
_NAME: Final = 40
_LEAST_FAILED: Final = 2  # fewest jobs for counting failures


def from_history(target: str, view: VectorView, under_use: UnderUse) -> TargetPrediction | None:
    """Return the prediction of a target from job history, None without one. Raises KeyError for an unknown target.

    `under_use` is the rule by which the history counted the use of GPUs.
    """
    return _gpu_underused(target, view, under_use) if target == "gpu_underused" else _SAYS[target](target, view)


def usually_late(view: VectorView) -> bool:
    """Return whether all of the user's last jobs like this one reached their limit: this one is likely meant to."""
    key = view.own_key(_USUAL, LATE)
    return key is not None and view[f"{key}_{LATE}"] >= view.remembered(key)


def _said(target: str, key: str, view: VectorView, feature: str, text: str, **values: object) -> TargetPrediction:
    reason = Reason(f"{key}_{feature}", view.get(f"{key}_{feature}"), None, 0.0, text)
    return TargetPrediction(target, "history", view.remembered(key), reasons=(reason,), **values)  # type: ignore[arg-type]


def _failure(target: str, view: VectorView) -> TargetPrediction | None:
    key = view.own_key(LEAST, FAILED, COMPLETED)
    if key is None:
        return None
    failed = view[f"{key}_{FAILED}"]
    judged = failed + view[f"{key}_{COMPLETED}"]
    if judged < LEAST:
        return None
    text = f"{number(failed)} of {last_jobs(key, view)} failed"
    return _said(target, key, view, FAILED, text, p=failed / judged)


def _timeout(target: str, view: VectorView) -> TargetPrediction | None:
    key = view.own_key(LEAST, LATE)
    if key is None:
        return None
    late = view[f"{key}_{LATE}"]
    text = f"{number(late)} of {last_jobs(key, view)} reached their time limit"
    return _said(target, key, view, LATE, text, p=min(1.0, late / view.remembered(key)))


def _walltime(target: str, view: VectorView) -> TargetPrediction | None:
    """Return the median of three, and the longest of k, which the next of k + 1 like jobs exceeds once in k + 1."""
    key = view.own_key(LEAST, LONGEST)
    if key is None:
        return None
    count, high = view.remembered(key), view[f"{key}_{LONGEST}"]
    last = [seconds for name in LAST_RUNS if (seconds := view.seconds(key, name)) is not None]
    quantiles = {"0.5": median(last), f"{count / (count + 1):.2f}": high} if last else {}
    limit = view.request.time_limit_s
    if limit is not None:
        quantiles = {name: min(value, float(limit)) for name, value in quantiles.items()}
    text = f"{last_jobs(key, view)} ran {span(view, key)}"
    return _said(target, key, view, LONGEST, text, quantiles=quantiles)


def _memory(target: str, view: VectorView) -> TargetPrediction | None:
    key = view.own_key(1, PEAK)
    if key is None:
        return None
    peak = view[f"{key}_{PEAK}"]
    return TargetPrediction(target, "history", min(_PEAKS, view.remembered(key)), quantiles={"0.5": peak})


def _gpu_underused(target: str, view: VectorView, under_use: UnderUse) -> TargetPrediction | None:
    key = view.own_key(1, GPU_USED)
    if key is None or not view.request.gpus:
        return None
    used = view[f"{key}_{GPU_USED}"]
    text = f"the GPUs of your last job{named(key, view)} were used {say_percent(used)} of the time"
    reason = Reason(f"{key}_{GPU_USED}", used, None, 0.0, text)
    limit = np.float16(under_use.below_ratio)  # same precision as the remembered use
    return TargetPrediction(target, "history", 1, p=float(used < limit), reasons=(reason,))


def _gpus_needed(target: str, view: VectorView) -> TargetPrediction | None:
    key = view.own_key(1, GPU_ACTIVE)
    # The user's last job of any name and size may have had only one GPU: no measure of what this job needs.
    if key is None or key == "user" or not view.request.gpus:
        return None
    active = view[f"{key}_{GPU_ACTIVE}"]
    text = f"your last job{named(key, view)} used {number(active)} {'GPU' if active == 1 else 'GPUs'}"
    reason = Reason(f"{key}_{GPU_ACTIVE}", active, None, 0.0, text)
    quantiles = {"0.5": min(active, float(view.request.gpus))}
    return TargetPrediction(target, "history", 1, quantiles=quantiles, reasons=(reason,))


def _nothing(_target: str, _view: VectorView) -> None:
    """Return None: the features do not count how many of the last jobs were cancelled."""


_SAYS: Final[dict[str, Callable[[str, VectorView], TargetPrediction | None]]] = {
    "failure": _failure,
    "failure_or_cancel": _nothing,
    "timeout": _timeout,
    "walltime": _walltime,
    "memory": _memory,
    "gpus_needed": _gpus_needed,
}


def own_sentences(recall: Recall, request: JobRequest) -> Mapping[str, tuple[str, ...]]:
    """Return the sentences by target; a target without a useful number is absent."""
    if not request.name:
        return {}
    runs = recall.runs(request.user, request.name)
    found: dict[str, tuple[str, ...]] = {}
    if request.gpus and (text := _gpus(runs, request.name)):
        found |= {"gpus_needed": (text,), "gpu_underused": (text,)}
    if text := _failed(runs, request.name):
        found |= {"failure": (text,), "failure_or_cancel": (text,)}
    return found


def gpus_needed(recall: Recall, request: JobRequest) -> TargetPrediction | None:
    """Return how many GPUs the user's last runs of this name used at most, None if that was not measured.

    It replaces the answer of predict.history, which covers only the last job.
    """
    runs = recall.runs(request.user, request.name) if request.gpus and request.name else []
    _, alike = _alike(runs)
    known = [run.active for run in alike if run.active is not None]
    if not known:
        return None
    text = _gpus(runs, request.name)
    reasons = (Reason("name_gpu_active", float(max(known)), None, 0.0, text),) if text else ()
    quantiles = {"0.5": min(float(max(known)), float(request.gpus))}
    return TargetPrediction("gpus_needed", "history", len(known), quantiles=quantiles, reasons=reasons)


def _alike(runs: list[OwnRun]) -> tuple[int, list[OwnRun]]:
    """Return the GPUs of the newest run, and the newest consecutive runs with as many; none without GPUs."""
    asked = next((run.asked for run in runs), 0)
    alike = []
    for run in runs if asked else ():
        if run.asked != asked:
            break
        alike.append(run)
    return asked, alike


def _gpus(runs: list[OwnRun], name: str) -> str:
    """Return in words how many GPUs the last runs with as many GPUs as the newest run used, "" if they used all."""
    asked, alike = _alike(runs)
    known = [run.active for run in alike if run.active is not None]
    if not known or max(known) >= asked:
        return ""
    most = "" if min(known) == max(known) else "at most "
    used = f"used {most}{max(known)} of {asked} {'GPU' if asked == 1 else 'GPUs'}"
    if len(known) == len(alike):
        return f"{_last(len(alike), name)} {used}"
    return f"{len(known)} of {_last(len(alike), name)} {'was' if len(known) == 1 else 'were'} measured: {used}"


def _failed(runs: list[OwnRun], name: str) -> str:
    failed = sum(run.failed for run in runs)
    if not failed or len(runs) < _LEAST_FAILED:
        return ""
    return f"{failed} of {_last(len(runs), name)} failed"


def _last(count: int, name: str) -> str:
    jobs = "job" if count == 1 else f"{count} jobs"
    return f"your last {jobs} named {name[:_NAME]}"
