"""What `gpuwaste simulate` answers with: what was simulated, and what each scheduler would have done."""

from typing import Annotated

from msgspec import Meta, Struct


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
    """What one scheduler would have done, and how it compares with the first one that was asked for."""

    title: str
    later_than_first: Annotated[
        float | None,
        Meta(description="Share of jobs that start later than under the first scheduler."),
    ] = None


class NodesResult(Struct, kw_only=True, frozen=True):
    """What a scheduler that places jobs on nodes has done besides starting them."""

    never_started: Annotated[int, Meta(description="Jobs that no node was up for; in none of the figures of waits.")]
    requeued: Annotated[int, Meta(description="Runs that began anew, after preemption or as a node failed.")]
    cut_short: Annotated[int, Meta(description="Jobs that preemption or a failed node ended for good.")]
    gpu_utilization: Annotated[
        dict[str, float],
        Meta(description="Share of the GPU-seconds of each type that was held, from first submission to last end."),
    ]


class SimulationDocument(Struct, kw_only=True, frozen=True, omit_defaults=True):
    """A simulation: equal inputs give equal results."""

    version: str
    trace: Annotated[str, Meta(description="What the jobs are from, in words.")]
    trace_sha256: Annotated[str, Meta(description="Hash of submissions, run times, limits, sizes and users.")]
    processors: int
    processors_from: Annotated[str, Meta(description="Why so many: given, the log's header, or the most held at once.")]
    walltime: Annotated[
        str, Meta(description="What schedulers plan with: user (limits), truth, recent (last two jobs).")
    ]
    schedulers: dict[str, SchedulerResult]
    left_out: Annotated[dict[str, int], Meta(description="Jobs that were not simulated, by reason.")] = {}
    logged: Annotated[Waits | None, Meta(description="The same jobs as the log has them; absent without waits.")] = None
    nodes: Annotated[
        dict[str, NodesResult], Meta(description="By scheduler, of those that place jobs on nodes; absent for others.")
    ] = {}
