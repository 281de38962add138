"""What a user's own last runs of a name say, in exact numbers: the sentences that advice at sbatch begins with."""

from collections.abc import Mapping
from typing import Final

from gpuwaste.advice.predict.prediction import Reason, TargetPrediction
from gpuwaste.jobs.history.recall import OwnRun, Recall
from gpuwaste.slurm.submit.request import JobRequest

_NAME: Final = 40
_LEAST_FAILED: Final = 2  # jobs from which failures are counted


def own_sentences(recall: Recall, request: JobRequest) -> Mapping[str, tuple[str, ...]]:
    """Return the sentences by target; a target without a number that says something is absent."""
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
    """Return how many GPUs the user's last runs of this name used at most, None where that was not measured.

    It takes the place of predict.history's answer, which looks back on the last job alone.
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
    """Return the GPUs of the newest run, and the runs in a row from it on that had as many; none without GPUs."""
    asked = next((run.asked for run in runs), 0)
    alike = []
    for run in runs if asked else ():
        if run.asked != asked:
            break
        alike.append(run)
    return asked, alike


def _gpus(runs: list[OwnRun], name: str) -> str:
    """Return what the last runs with as many GPUs as the newest one did with them, "" where they used all."""
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
