"""The facts that a rule's condition and its texts may name: typed, declared once, with the reference's text.

In a text, a fact in braces such as {job.id} is replaced by its value, plain words of one line.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from typing import Annotated, Any, Final, Literal, get_args, get_type_hints

from msgspec import Meta

from gpuwaste.core.typed_toml import nearest
from gpuwaste.core.units import HOUR_S

About = Literal["running", "waiting", "node", "model"]
FactType = Literal["bool", "int", "double", "string"]
_Float = float | None  # unknown is None
_Int = int | None
ABOUTS: Final[tuple[About, ...]] = get_args(About)
_TYPES: Final[Mapping[object, FactType]] = {
    bool: "bool",
    int: "int",
    float: "double",
    str: "string",
    str | None: "string",
    int | None: "int",
    float | None: "double",
}
_PLACE: Final = re.compile(r"\{([^{}\n]{0,80})\}")
_ODD: Final = re.compile(r"[^ -~\u00a1-\u2027\u202a-\ud7ff\ue000-\U0010ffff]|[;=]")
_LONGEST: Final = 40
_NUMBER: Final = 16
_UNKNOWN: Final = "unknown"
_LISTS: Final = {"ledger.idle_nodes": 4000}  # characters; a longer list is not cut: it is not known
_LONG_NAME: Final = 63  # of a node


@dataclass(frozen=True, slots=True)
class JobFacts:
    """The run, from accounting."""

    id: Annotated[int, Meta(description="Slurm's raw job id.")]
    user: Annotated[str, Meta(description="The user's name.")]
    account: Annotated[str, Meta(description="The account.")]
    partition: Annotated[str, Meta(description="The partition; of a waiting job several, separated by commas.")]
    qos: Annotated[str, Meta(description="The QOS.")]
    reservation: Annotated[str, Meta(description="The reservation, empty for none.")]
    gpus: Annotated[int, Meta(description="GPUs that the run holds; 0 while it waits.")]
    cpus: Annotated[int, Meta(description="CPUs of the run.")]
    nodes: Annotated[int, Meta(description="Number of nodes.")]
    array: Annotated[bool, Meta(description="Whether it is a task of an array.")]
    run_s: Annotated[float, Meta(description="Seconds since the start; 0 while it waits.")]
    limit_s: Annotated[float, Meta(description="The time limit in seconds; not known for an unlimited job.")]
    left_s: Annotated[float, Meta(description="Seconds until the time limit; not known for an unlimited job.")]
    waited_s: Annotated[float, Meta(description="Seconds from submission to the start, or until now.")]


@dataclass(frozen=True, slots=True)
class GpuState:
    """The GPUs of a running run, as agents reported them; not known where one GPU of the run is not known."""

    idle_s: Annotated[
        _Float, Meta(description="Seconds for which all GPUs of the run have been idle; 0: not all are idle.")
    ] = None
    idle_gpus: Annotated[_Int, Meta(description="GPUs that have been idle for a minute or more.")] = None
    longest_idle_s: Annotated[_Float, Meta(description="Seconds for which the longest idle GPU has been idle.")] = None
    untouched_gpus: Annotated[_Int, Meta(description="GPUs that have been idle since the start of the run.")] = None
    wasted_gpu_s: Annotated[_Float, Meta(description="GPU-seconds wasted since the start.")] = None
    exempt_gpu_s: Annotated[
        _Float, Meta(description="The exempt part of wasted_gpu_s (memory-resident, interactive).")
    ] = None
    age_s: Annotated[_Float, Meta(description="Age of the last report of these GPUs, seconds; the oldest counts.")] = (
        None
    )
    coverage: Annotated[_Float, Meta(description="The lowest coverage of the run's GPUs since the start, 0 to 1.")] = (
        None
    )
    idle_nodes: Annotated[
        str | None,
        Meta(
            description="Nodes of the run on which all of its GPUs have been idle for ten minutes and more, separated "
            "by commas; none: there is no such node."
        ),
    ] = None
    idle_nodes_s: Annotated[
        _Float, Meta(description="Seconds for which the GPUs of all of these nodes have been idle; 0: no such node.")
    ] = None
    hang_s: Annotated[
        _Float,
        Meta(
            description="Seconds for which all GPUs of the run were at 95 % or more with almost no power, or with "
            "almost no SM busy; counted back from now, 6 hours at most. 0: not all GPUs are like this; not known where "
            "a GPU reports neither power nor SMs."
        ),
    ] = None
    cpu_cores: Annotated[
        _Float,
        Meta(description="CPU cores that the run used on the nodes of its GPUs, mean of the last two hours."),
    ] = None


@dataclass(frozen=True, slots=True)
class UserFacts:
    """The user's own record of runs with and without GPUs."""

    running_jobs: Annotated[int, Meta(description="Runs of the user that are running now.")]
    running_gpus: Annotated[int, Meta(description="GPUs that these runs hold.")]
    ended_1d: Annotated[int, Meta(description="Runs that ended in the last 24 hours.")]
    failed_1d: Annotated[int, Meta(description="Runs of these that ended FAILED or OUT_OF_MEMORY.")]
    short_1d: Annotated[int, Meta(description="Runs of these that took less than a minute.")]
    gpu_h_7d: Annotated[float, Meta(description="GPU-hours of runs that ended in the last 7 days.")]


@dataclass(frozen=True, slots=True)
class QueueFacts:
    """The waiting jobs of the run's partition."""

    waiting_jobs: Annotated[
        int, Meta(description="Pending jobs in the partition; the pending part of an array is one job.")
    ]


@dataclass(frozen=True, slots=True)
class ArrayFacts:
    """The array of the run; not known for a run that is in none."""

    ended: Annotated[int, Meta(description="Tasks of the array that have ended.")]
    failed_in_row: Annotated[int, Meta(description="Number of last tasks in a row that ended with the same failure.")]


@dataclass(frozen=True, slots=True)
class PredictionFacts:
    """The model's prediction at submission (`gw=ID` in the job); not known for a job without a verdict."""

    failure: Annotated[float, Meta(description="Probability that the job fails, 0 to 1.")]
    timeout: Annotated[float, Meta(description="Probability that the job reaches its time limit, 0 to 1.")]
    run_low_s: Annotated[float, Meta(description="Lower end of the interval of the run time, seconds.")]
    run_high_s: Annotated[float, Meta(description="Upper end of the interval of the run time, seconds.")]


@dataclass(frozen=True, slots=True)
class RescoreFacts:
    """What was predicted again while the run was running (`[hub] rescore`), the newest; not known before that."""

    failure: Annotated[float, Meta(description="Probability that the job fails, 0 to 1.")]
    timeout: Annotated[float, Meta(description="Probability that the job reaches its time limit, 0 to 1.")]
    limit: Annotated[
        float,
        Meta(description="Probability of the time limit given the run time so far, 0 to 1; known shortly before it."),
    ]
    age_s: Annotated[float, Meta(description="Age of the prediction, seconds.")]


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """A node on which GPU jobs of one node ended, or GPUs of jobs had Xid errors, in the last 24 hours."""

    name: Annotated[str, Meta(description="NodeName.")]
    ended_1d: Annotated[int, Meta(description="GPU jobs on only this node that ended in the last 24 hours.")]
    failed_1d: Annotated[int, Meta(description="Jobs of these that ended FAILED or NODE_FAIL.")]
    failed_users_1d: Annotated[int, Meta(description="Different users of these failed jobs.")]
    completed_1d: Annotated[int, Meta(description="Jobs of these that ended COMPLETED.")]
    failed_in_row: Annotated[int, Meta(description="Jobs that failed since the last one that completed.")]
    failed_users_in_row: Annotated[int, Meta(description="Different users of these.")]
    xids_1d: Annotated[
        int, Meta(description="Xid errors of the list `[agent] health_xids`, of GPUs that jobs held, in 24 hours.")
    ]
    xid_gpus_1d: Annotated[int, Meta(description="GPUs that had them.")]
    xid_runs_1d: Annotated[int, Meta(description="Runs that held these GPUs then.")]


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """The model in use, judged by jobs that ended in the last 7 days and that it scored at submission."""

    name: Annotated[str, Meta(description="Name of the model.")]
    age_s: Annotated[float, Meta(description="Seconds since it was trained.")]
    judged_7d: Annotated[int, Meta(description="Jobs of these that completed or failed.")]
    failed_ratio: Annotated[float, Meta(description="Share of these that ended FAILED or OUT_OF_MEMORY, 0 to 1.")]
    expected_ratio: Annotated[float, Meta(description="Mean probability of failure that it gave them, 0 to 1.")]
    ece: Annotated[
        float, Meta(description="Calibration error: mean distance of both in ten bins of the probability, 0 to 1.")
    ]
    skill: Annotated[
        float,
        Meta(
            description="Brier skill: 1 - its Brier score / the score of predicting failed_ratio for each job; "
            "below 0: worse than that."
        ),
    ]


_OF_JOBS: Final = {
    "job": JobFacts,
    "ledger": GpuState,
    "user": UserFacts,
    "queue": QueueFacts,
    "array": ArrayFacts,
    "prediction": PredictionFacts,
    "rescore": RescoreFacts,
}
SPACES: Final[Mapping[About, Mapping[str, type]]] = {
    "running": _OF_JOBS,
    "waiting": {name: kind for name, kind in _OF_JOBS.items() if name not in {"ledger", "rescore"}},
    "node": {"node": NodeFacts},
    "model": {"model": ModelFacts},
}


@cache
def facts_of(about: About) -> Mapping[str, FactType]:
    """Return the type of each fact of a subject by its name, such as ledger.idle_s."""
    found: dict[str, FactType] = {}
    for space, kind in SPACES[about].items():
        hints = get_type_hints(kind)
        found |= {f"{space}.{field.name}": _TYPES[hints[field.name]] for field in fields(kind)}
    return found


def names_in(text: str) -> list[str]:
    """Return the facts that a text names."""
    return _PLACE.findall(text)


def problem_of(text: str, facts: Mapping[str, FactType]) -> str:
    """Return the error in the placeholders of a text, "" for none."""
    for name in _PLACE.findall(text):
        if name not in facts:
            return f"unknown fact {name!r}{nearest(name, set(facts))}"
    return ""


def widest(text: str, facts: Mapping[str, FactType]) -> str:
    """Return a text with placeholders replaced by values of the maximum length."""
    return _PLACE.sub(lambda match: _widest(match[1], facts), text)


def _widest(name: str, facts: Mapping[str, FactType]) -> str:
    if name in _LISTS:
        return ",".join(["x" * _LONG_NAME] * (_LISTS[name] // (_LONG_NAME + 1)))
    return "x" * (_LONGEST if facts.get(name) == "string" else _NUMBER)


def filled(text: str, values: Mapping[str, Any]) -> str:
    """Return a text with facts filled in; a control character or a mark of Slurm's comments in a name becomes `?`."""
    return _PLACE.sub(lambda match: _word(match[1], values.get(match[1])), text)


def _word(name: str, value: Any) -> str:
    if value is None:
        return _UNKNOWN
    if isinstance(value, float):
        return _duration(value) if name.endswith("_s") else f"{value:.1f}" if abs(value) > 1 else f"{value:.2f}"
    plain = _ODD.sub("?", str(value))
    if name in _LISTS:
        return plain if len(plain) <= _LISTS[name] else _UNKNOWN
    return plain[:_LONGEST]


def _duration(seconds: float) -> str:
    """Return seconds in words, in full minutes."""
    minutes = int(seconds // 60)
    hours, rest = divmod(minutes, HOUR_S // 60)
    return f"{hours} h {rest} min" if hours else f"{minutes} min"
