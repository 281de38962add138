"""What `gpuwaste simulate` answers with: what was simulated, what each scheduler would have done, and the spread."""

import math
import statistics
from collections.abc import Iterator, Sequence
from typing import Annotated, Final

from msgspec import Meta, Struct

# Student's t, two-sided 95 %, by degrees of freedom 1 to 30; beyond, the normal distribution's.
_T95: Final = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
_NORMAL: Final = 1.960
DIGITS: Final = 3


class Spread(Struct, kw_only=True, frozen=True):
    """A figure of several runs: mean over them, its 95 % interval (Student), and their standard deviation."""

    mean: float
    low: Annotated[float | None, Meta(description="Absent with a single run.")] = None
    high: Annotated[float | None, Meta(description="Absent with a single run.")] = None
    deviation: Annotated[float | None, Meta(description="Standard deviation between runs.")] = None


def spread(values: Sequence[float], digits: int = DIGITS) -> Spread | None:
    """Return mean, interval and deviation of a figure of several runs; None without any."""
    if not values:
        return None
    mean = statistics.fmean(values)
    if len(values) == 1:
        return Spread(mean=round(mean, digits))
    deviation = statistics.stdev(values)
    t = _T95[len(values) - 2] if len(values) - 2 < len(_T95) else _NORMAL
    half = t * deviation / math.sqrt(len(values))
    return Spread(
        mean=round(mean, digits),
        low=round(mean - half, digits),
        high=round(mean + half, digits),
        deviation=round(deviation, digits),
    )


class Waits(Struct, kw_only=True, frozen=True):
    """How jobs fared: in the log, or under a scheduler. Bounded slowdown counts runs under 10 s as 10 s."""

    jobs: int
    mean_wait_s: float
    p50_wait_s: float
    p95_wait_s: float
    max_wait_s: int
    mean_bounded_slowdown: float
    utilization: Annotated[float, Meta(description="Share of the processor-seconds from first submission to last end.")]
    makespan_s: Annotated[int, Meta(description="From the first submission to the last end.")]


class SchedulerResult(Waits, kw_only=True, frozen=True):
    """What one scheduler would have done, and how it compares with the first one that was requested."""

    title: str
    later_than_first: Annotated[
        float | None,
        Meta(description="Share of jobs that start later than under the first scheduler."),
    ] = None


class Delta(Struct, kw_only=True, frozen=True, omit_defaults=True):
    """One figure of the base and of a change."""

    base: float
    changed: float
    difference: Annotated[float, Meta(description="Changed less base.")]
    low: Annotated[float | None, Meta(description="Lower end of the 95 % interval of the difference.")] = None
    high: float | None = None


class GroupDelta(Struct, kw_only=True, frozen=True):
    """How the jobs of one user, account, partition or size fare."""

    name: str
    jobs: int
    mean_wait_s: Delta
    p50_wait_s: Delta
    p95_wait_s: Delta


class Difference(Struct, kw_only=True, frozen=True, omit_defaults=True):
    """What a change does to the same jobs. Waits and starts are of the jobs that both sides run, paired job by job."""

    base: Annotated[str, Meta(description="The scheduler of the base.")]
    change: Annotated[str, Meta(description="The change: name of a what-if with its value, or a scheduler.")]
    scheduler: str
    title: str
    processors: int
    jobs: Annotated[int, Meta(description="Jobs in both runs.")]
    blocks: Annotated[str, Meta(description="Blocks that are resampled for the intervals, such as 12 weeks.")]
    figures: Annotated[dict[str, Delta], Meta(description="mean_wait_s, p95_wait_s, utilization, held_h ...")]
    later: Annotated[float, Meta(description="Share of the starts that are later than in the base.")]
    gpu_utilization: Annotated[
        dict[str, Delta],
        Meta(description="By GPU type: share of its GPU-seconds that was held; of schedulers on nodes."),
    ] = {}
    later_low: float | None = None
    later_high: float | None = None
    earlier: Annotated[float, Meta(description="Share of the starts that are earlier than in the base.")] = 0.0
    groups: Annotated[
        dict[str, list[GroupDelta]], Meta(description="By user, account, partition and size; those with most jobs.")
    ] = {}
    over_seeds: Annotated[
        dict[str, Delta], Meta(description="The same figures over seeds: means, and the interval over the seeds.")
    ] = {}
    groups_left_out: Annotated[dict[str, int], Meta(description="Number of groups that are not listed.")] = {}
    facts: Annotated[dict[str, float], Meta(description="Counts of what the change did.")] = {}
    notes: list[str] = []


class SimulatedSeries(Struct, kw_only=True, frozen=True):
    """One simulated run over time, in bins: `at` is the begin of each bin, UTC seconds."""

    name: str
    at: list[int]
    used: Annotated[list[float], Meta(description="Share of the machine that is held, 0 to 1.")]
    waiting: Annotated[list[float], Meta(description="Jobs in the queue, mean of the bin.")]
    mean_wait_s: Annotated[list[float | None], Meta(description="Of the jobs submitted in the bin; null for none.")]


class GanttNode(Struct, kw_only=True, frozen=True):
    """A node of a Gantt chart, which has a lane for each GPU; one without GPUs has a lane that its CPUs share."""

    name: str
    gpus: int
    cpus: int
    down: Annotated[list[tuple[int, int]], Meta(description="When it is down in the window: from, until, UTC s.")] = []


class GanttBar(Struct, kw_only=True, frozen=True):
    """What one run of a job holds of one node: neighbouring GPUs, or CPUs of a node without GPUs."""

    node: Annotated[int, Meta(description="Place in `nodes`.")]
    first: Annotated[
        int,
        Meta(description="First GPU or CPU drawn, from 0: the lowest free one. Not Slurm's index."),
    ]
    count: int
    job_id: int
    start: Annotated[int, Meta(description="UTC seconds; a bar may begin before the window.")]
    end: Annotated[int, Meta(description="UTC seconds; may be after the window, up to the end of the run.")]
    waited_s: int


class GanttWindow(Struct, kw_only=True, frozen=True):
    """Which job holds what of which node in a window of one run."""

    name: Annotated[str, Meta(description="The run: a scheduler, or a what-if and a scheduler.")]
    start: Annotated[int, Meta(description="UTC seconds.")]
    end: Annotated[int, Meta(description="UTC seconds.")]
    nodes: list[GanttNode]
    bars: list[GanttBar]
    left_out: Annotated[dict[str, int], Meta(description="Nodes and bars that are not drawn: the chart is full.")] = {}


class NodesResult(Struct, kw_only=True, frozen=True):
    """What a scheduler that places jobs on nodes has done besides starting them."""

    never_started: Annotated[
        int,
        Meta(description="Jobs without a node that was up, or held by a limit to the end; in no figure of waits."),
    ]
    requeued: Annotated[int, Meta(description="Runs that started again after preemption or a node failure.")]
    cut_short: Annotated[
        int, Meta(description="Jobs that ended by preemption or a node failure and were not requeued.")
    ]
    gpu_utilization: Annotated[
        dict[str, float],
        Meta(description="Share of the GPU-seconds of each type that was held, from first submission to last end."),
    ]
    held: Annotated[
        dict[str, int],
        Meta(description="Jobs that a limit of a QOS or an association held back, by squeue's last reason."),
    ] = {}


class Energy(Struct, kw_only=True, frozen=True):
    """What agents measured of the energy of the simulated jobs' GPUs; hosts and coolers are not in it."""

    used_kwh: float
    measured_share: Annotated[float, Meta(description="Share of the GPU-hours held in which energy was measured.")]
    idle_w: Annotated[dict[str, float], Meta(description="Mean power of an idle GPU by type, watts, as measured.")]


class SeedFigure(Spread, kw_only=True, frozen=True):
    """A figure over seeds, and its value for each of them."""

    values: list[float]


class Seeds(Struct, kw_only=True, frozen=True):
    """The same simulation with other seeds; everything else of a document is of the first one."""

    seeds: Annotated[list[int], Meta(description="Number added to each seed of the command, from 0.")]
    drawn: Annotated[list[str], Meta(description="What depends on the seeds; empty: nothing is random.")]
    runs: Annotated[
        dict[str, dict[str, SeedFigure]], Meta(description="By run (easy, gpus:easy) and figure (mean_wait_s).")
    ] = {}


class Proposal(Struct, kw_only=True, frozen=True):
    """The change that shortens the mean wait most; its interval is below 0. Nothing applies it."""

    change: str
    scheduler: str
    jobs: Annotated[int, Meta(description="Jobs in both runs.")]
    mean_wait_s: Annotated[float, Meta(description="Change of the mean wait, seconds.")]
    low_s: Annotated[float, Meta(description="Lower end of its 95 % interval, seconds.")]
    high_s: float
    later: Annotated[float, Meta(description="Share of the starts that are later than in the base.")]
    among: Annotated[int, Meta(description="Changes that were simulated: the best of many looks better than it is.")]


class SimulationDocument(Struct, kw_only=True, frozen=True, omit_defaults=True):
    """A simulation: equal inputs give equal results."""

    version: str
    trace: Annotated[str, Meta(description="Source of the jobs, in words.")]
    trace_sha256: Annotated[str, Meta(description="Hash of submissions, run times, limits, sizes and users.")]
    processors: int
    processors_from: Annotated[
        str, Meta(description="Source of the size: given, the log's header, or the most held at once.")
    ]
    walltime: Annotated[
        str, Meta(description="What schedulers plan with: user (limits), truth, recent (last two jobs), model.")
    ]
    schedulers: dict[str, SchedulerResult]
    left_out: Annotated[dict[str, int], Meta(description="Jobs that were not simulated, by reason.")] = {}
    left_out_jobs: Annotated[
        dict[str, list[int]], Meta(description="Ids of the first of these jobs, for reasons that a job has by itself.")
    ] = {}
    unread: Annotated[
        list[str], Meta(description="Rows of the log that could not be read, with the numbers of the first.")
    ] = []
    steps: Annotated[tuple[str, ...], Meta(description="Steps applied to the jobs first (--step), in order.")] = ()
    logged: Annotated[Waits | None, Meta(description="The same jobs as the log has them; absent without waits.")] = None
    resource: Annotated[str, Meta(description="What the machine's size and the jobs' sizes count.")] = "processors"
    differences: Annotated[list[Difference], Meta(description="Each change compared with its base.")] = []
    proposal: Annotated[
        Proposal | None, Meta(description="What --propose chose; absent: no change has a clear gain.")
    ] = None
    series: Annotated[list[SimulatedSeries], Meta(description="The same runs over time, for plots.")] = []
    gantt: Annotated[list[GanttWindow], Meta(description="What jobs hold of nodes in a window; see --gantt.")] = []
    energy: Annotated[Energy | None, Meta(description="Of the jobs' GPUs; absent where none was measured.")] = None
    seeds: Annotated[Seeds | None, Meta(description="Figures over seeds; absent without --seeds.")] = None
    stopped: Annotated[str, Meta(description="What is missing because the simulation was interrupted.")] = ""
    nodes: Annotated[
        dict[str, NodesResult], Meta(description="By scheduler; only for schedulers that place jobs on nodes.")
    ] = {}


def left_out_words(document: SimulationDocument) -> Iterator[str]:
    """Yield a clause for each reason, without a full stop."""
    yield from document.unread
    for reason, count in document.left_out.items():
        ids = document.left_out_jobs.get(reason, [])
        more = ", ..." if count > len(ids) else ""
        which = f" (job {', '.join(map(str, ids))}{more})" if ids else ""
        yield f"{count} {'job is left out: it' if count == 1 else 'jobs are left out: each'} {reason}{which}"
