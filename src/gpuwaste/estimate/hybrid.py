"""Which estimator is used for a job of a known program: own runs of it, the white box, or the model of job history.

Each is measured on the past runs of the program, a run by what was known when it was submitted: own runs by the median
of those that had ended before, the white box by the time of its step, the history by what was recorded at submission.
The white box never sees these runs, it is calibrated with other programs. If two were measured on at least MIN_COMMON
equal runs, the one with the smaller mean relative error is used; else own runs take precedence over the white box, and
that over the history. A white box that rests on public measurements only comes after the history: nothing shows that
it is better here.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Final

from gpuwaste.estimate.estimate_types import StepTime
from gpuwaste.jobs.program_estimate import Estimator, EstimatorError, ProgramRun
from gpuwaste.slurm.gpu_types import find

MIN_COMMON: Final = 3
_ORDER: Final[tuple[Estimator, ...]] = ("own runs", "white box", "history")
_UNPROVEN: Final[tuple[Estimator, ...]] = ("own runs", "history", "white box")
_WHITE_COVERAGE: Final = 0.9


@dataclass(frozen=True, slots=True)
class EstimatedJob:
    """The requested job: GPU type as Slurm names it, number of whole GPUs, declared steps (None: none), job name."""

    gpu_type: str
    gpus: int
    steps: int | None = None
    name: str = ""
    nodes: int = 1


Times = Callable[[EstimatedJob], StepTime]
"""The white box: the time of the program's step on the GPUs of the job."""


@dataclass(frozen=True, slots=True)
class EstimatedRunTime:
    """A run time of one estimator in seconds with its interval; `coverage` is the share of runs inside.

    ProgramEstimate is the answer to the user: the one that is used, with the request and its memory.
    """

    estimator: Estimator
    run_s: float
    low_s: float | None = None
    high_s: float | None = None
    coverage: float | None = None
    step_s: float | None = None
    runs: int = 0
    basis: str = ""
    public: bool = False


@dataclass(frozen=True, slots=True)
class EstimatorChoice:
    """The result of the estimators: the run time of the one used, None with `refused` where there is none."""

    time: EstimatedRunTime | None
    refused: str
    errors: tuple[EstimatorError, ...]


def spoken(
    job: EstimatedJob, runs: Sequence[ProgramRun], times: Times | None, history: EstimatedRunTime | None
) -> EstimatorChoice:
    """Return the run time by the estimator with the smallest measured error. `times` is None without the program."""
    like = _like(job, runs)
    white, refused = _white(job, times)
    answers: dict[Estimator, EstimatedRunTime | None] = {
        "own runs": _own(job, like),
        "white box": white,
        "history": history,
    }
    scores = _scores(job, like, times)
    best: Estimator | None = None
    for name in _UNPROVEN if white is not None and white.public else _ORDER:
        if answers[name] is not None and (best is None or _better(scores[name], scores[best])):
            best = name
    errors = tuple(
        EstimatorError(estimator=name, error=round(fmean(scores[name].values()), 4), runs=len(scores[name]))
        for name in _ORDER
        if scores[name]
    )
    return EstimatorChoice(None if best is None else answers[best], "" if best is not None else refused, errors)


def same_gpu(one: str, other: str) -> bool:
    """Return whether two names mean the same type of GPU."""
    return _canonical(one) == _canonical(other)


def _canonical(name: str) -> str:
    device = find(name)
    return name.strip().lower() if device is None else device.name


def _like(job: EstimatedJob, runs: Sequence[ProgramRun]) -> list[ProgramRun]:
    """Return the runs on as many GPUs of the type, in the order of their ends; those of the job's name if any.

    If the job declares steps, only runs that declare some: nothing about a step follows from the length of the others.
    """
    found = sorted(
        (run for run in runs if run.gpus == job.gpus and same_gpu(run.gpu_type, job.gpu_type) and run.run_s > 0),
        key=lambda run: run.end,
    )
    found = [run for run in found if run.name == job.name] or found
    return [run for run in found if run.steps] if job.steps else found


def _label(job: EstimatedJob, run: ProgramRun) -> float:
    """Return the seconds of a step if steps are declared, else of the run."""
    return run.run_s / run.steps if job.steps and run.steps else float(run.run_s)


def _own(job: EstimatedJob, runs: Sequence[ProgramRun]) -> EstimatedRunTime | None:
    """Return the median of the labels; the next run is inside the range of n with probability (n - 1) / (n + 1)."""
    if not runs:
        return None
    labels, steps = [_label(job, run) for run in runs], job.steps or 1
    many = len(labels)
    words = "your 1 earlier run" if many == 1 else f"your {many} earlier runs"
    ranged = many > 1
    return EstimatedRunTime(
        "own runs",
        median(labels) * steps,
        min(labels) * steps if ranged else None,
        max(labels) * steps if ranged else None,
        (many - 1) / (many + 1) if ranged else None,
        median(labels) if job.steps else None,
        many,
        f"{words} of this program on {_place(job)}" + (", scaled by the declared steps" if job.steps else ""),
    )


def _white(job: EstimatedJob, times: Times | None) -> tuple[EstimatedRunTime | None, str]:
    """Return the white box's run time with its interval, or why there is none."""
    if times is None:
        return None, "you have not run this program on such GPUs yet, and the program's file is not on this host"
    if not job.gpus:
        return None, "the job requests no GPU"
    if not job.gpu_type:
        return None, "the job requests no GPU type: request one"
    time = times(job)
    if time.step_s is None or time.low_s is None or time.high_s is None:
        return None, time.refused or "the time has no interval"
    if job.steps is None:
        return None, "steps are not declared: add steps=N to the line that names the program"
    low_s, mid_s, high_s = (each * job.steps for each in (time.low_s, time.step_s, time.high_s))
    # No share of runs is known to be inside the range of several GPUs: it goes from full overlap to none.
    coverage = _WHITE_COVERAGE if job.gpus == 1 else None
    found = EstimatedRunTime("white box", mid_s, low_s, high_s, coverage, time.step_s, 0, time.basis, time.public)
    return found, ""


def _place(job: EstimatedJob) -> str:
    kind = job.gpu_type or "any type"
    return "no GPU" if not job.gpus else f"{job.gpus} GPU{'s' if job.gpus > 1 else ''} of {kind}"


def _scores(job: EstimatedJob, runs: Sequence[ProgramRun], times: Times | None) -> dict[Estimator, dict[int, float]]:
    """Return the relative errors of each estimator by the place of the run."""
    found: dict[Estimator, dict[int, float]] = {name: {} for name in _ORDER}
    time = times(job) if times is not None and job.gpus and job.gpu_type else None
    for place, run in enumerate(runs):
        before = [_label(job, each) for each in runs if each.end <= run.submit]
        predicted: Mapping[Estimator, float | None] = {
            "own runs": median(before) * ((run.steps or 1) if job.steps else 1) if before else None,
            "white box": time.step_s * run.steps if time is not None and time.step_s and run.steps else None,
            "history": run.predicted_s,
        }
        for name, value in predicted.items():
            if value is not None:
                found[name][place] = abs(value - run.run_s) / run.run_s
    return found


def _better(one: Mapping[int, float], other: Mapping[int, float]) -> bool:
    """Return whether the first had the smaller error on the runs on which both were measured."""
    common = one.keys() & other.keys()
    return len(common) >= MIN_COMMON and fmean(one[n] for n in common) < fmean(other[n] for n in common)
