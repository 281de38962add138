"""The samples of one job over time: an agent's answer for its node, and the hub's document made from it.

Columns instead of rows: a series has a value for each instant of `t_ms`, null where it is unknown. Times of columns are
UTC milliseconds, all others UTC seconds.
"""

from typing import Annotated, Final, Literal

from msgspec import Meta, Struct, field

from gpuwaste.core.fields import Document, MaybeBytes, MaybeUtc, Utc
from gpuwaste.net.sample_query import MOST_POINTS

SCHEMA: Final = 1
MOST_COLUMN: Final = 2 * MOST_POINTS + 1  # with a null in each gap
MOST_RUNS: Final = 4  # of a job: the newest
MOST_NODES: Final = 16  # of all runs of an answer
MOST_GPUS: Final = 128  # per node: 16 GPUs with 7 MIG instances each are 112
_FAR: Final = 1e15
_FAR_MS: Final = 2**50
Name = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_.:\-/]{1,128}\Z")]

_Value = Annotated[float, Meta(ge=0, le=_FAR)]
_Column = Annotated[list[_Value | None], Meta(max_length=MOST_COLUMN)]
_Times = Annotated[
    list[Annotated[int, Meta(ge=0, le=_FAR_MS)]],
    Meta(max_length=MOST_COLUMN, description="Instants of the series' values, UTC milliseconds, ascending."),
]
_Interval = Annotated[
    int,
    Meta(ge=0, le=_FAR_MS, description="Milliseconds of which each value is the mean; 0: the values are samples."),
]
Instance = Annotated[str, Meta(pattern=r"^[0-9/]{0,16}\Z", description="The MIG instance; empty: a whole GPU.")]
NodeState = Literal[
    "answered",  # the samples are here
    "no_samples",  # the node has none of the run: its agent did not run, or had no GPU of it
    "past_retention",
    "unreachable",
    "gone",  # Slurm no longer has the node
    "not_served",  # an older agent, or [agent] serve_samples is off
    "refused",
    "busy",
    "failed",
    "invalid",  # not an answer of a genuine agent
    "not_asked",
]


class CurveSeries(Struct, frozen=True, kw_only=True):
    """One quantity of a GPU; minimum and maximum are null where each value is one sample."""

    mean: _Column
    min: _Column | None = None
    max: _Column | None = None


class GpuCurves(Struct, frozen=True, kw_only=True):
    """The series of one GPU; a series that was never read is null."""

    gpu_uuid: Name
    instance: Instance = ""
    mem_total_b: MaybeBytes = None
    power_limit_w: Annotated[float | None, Meta(description="Watts; null: not known.")] = None
    util_pct: Annotated[CurveSeries | None, Meta(description="Time in which a kernel ran, percent.")] = None
    sm_pct: Annotated[CurveSeries | None, Meta(description="Multiprocessors that were busy, percent.")] = None
    mem_used_b: Annotated[CurveSeries | None, Meta(description="GPU memory in use, bytes.")] = None
    power_w: Annotated[CurveSeries | None, Meta(description="Power, watts.")] = None


QUANTITIES: Final = ("util_pct", "sm_pct", "mem_used_b", "power_w")
"""The series of a GPU, in the order in which their values are sent."""


class NodeSamples(Struct, frozen=True, kw_only=True):
    """What the agent of a node answers to GET /v1/samples."""

    schema: int
    node: Name
    job_id: int
    start: Utc
    kept_since: Annotated[MaybeUtc, Meta(description="Start of the oldest day that the node has, UTC seconds.")]
    kept_days: Annotated[int, Meta(ge=0, le=_FAR_MS, description="Retention of samples on the node, days.")]
    unreadable_days: Annotated[int, Meta(ge=0, le=_FAR_MS, description="Days whose file cannot be read.")]
    interval_ms: _Interval
    t_ms: _Times
    gpus: Annotated[list[GpuCurves], Meta(max_length=MOST_GPUS)]


class HourMean(Struct, frozen=True, kw_only=True):
    """What the ledger has of a GPU in an hour, or in a day that was summed up."""

    gpu_uuid: str
    t0_ms: Annotated[int, Meta(description="UTC milliseconds.")]
    t1_ms: Annotated[int, Meta(description="UTC milliseconds.")]
    util_pct: Annotated[float | None, Meta(description="Mean, percent; null: not known.")]
    mem_max_b: MaybeBytes
    power_w: Annotated[float | None, Meta(description="Mean, watts; null: not known.")]
    cpus: Annotated[float | None, Meta(description="CPUs of the whole run on the node in use, mean; null: not known.")]


class NodeCurves(Struct, frozen=True, kw_only=True):
    """The samples of a run on one node; `hours` has its CPUs, and is used where there are no samples."""

    node: str
    state: Annotated[NodeState, Meta(description="Whether the node's samples are in the answer; if not, why.")]
    source: Annotated[Literal["agent", "prometheus", ""], Meta(description="Source of the samples.")] = ""
    words: Annotated[
        str, Meta(description="What this state means for the reader, one line; empty: nothing to add.")
    ] = ""
    kept_since: MaybeUtc = None
    kept_days: int | None = None
    unreadable_days: int = 0
    gpus_left_out: Annotated[int, Meta(description="GPUs that are not this run's, or too many.")] = 0
    interval_ms: _Interval = 0
    t_ms: _Times = []
    gpus: list[GpuCurves] = []
    hours: list[HourMean] = []


class RunCurves(Struct, frozen=True, kw_only=True):
    """The samples of one run."""

    cluster: str
    job_id: Annotated[int, Meta(description="The raw job id.")] = field(name="jobid")
    printed_id: str
    start: Utc
    end: MaybeUtc
    nodes: list[NodeCurves]
    nodes_left_out: Annotated[int, Meta(description="Nodes that were not queried: `node` picks one.")] = 0


class JobCurves(Document, frozen=True, kw_only=True):
    """The samples of a job's newest runs, by node and GPU."""

    document: Literal["curves"] = "curves"
    schema: int = SCHEMA
    generated: Utc
    printed_id: str = field(name="job_id")
    runs: list[RunCurves]
    runs_left_out: Annotated[int, Meta(description="Older runs; `start` picks one.")] = 0
