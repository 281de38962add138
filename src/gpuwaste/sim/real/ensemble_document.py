"""What `gpuwaste simulate run --engine slurmctld` answers with: each run, and the figures of the ensemble."""

from typing import Annotated

from msgspec import Meta, Struct

from gpuwaste.sim.document import Spread


class RealRun(Struct, kw_only=True, frozen=True):
    """One run of the trace on a real slurmctld. Waits are slurmctld's own: from its submit time to its start time."""

    number: int
    complete: Annotated[bool, Meta(description="False for an interrupted run: its figures are of the jobs that ended.")]
    states: Annotated[
        dict[str, int], Meta(description="Jobs by final state; REFUSED and NEVER_STARTED are not states of Slurm.")
    ]
    wall_s: Annotated[float, Meta(description="Real seconds that the run took.")]
    mean_wait_s: float | None = None
    p50_wait_s: float | None = None
    p95_wait_s: float | None = None
    max_wait_s: float | None = None
    mean_bounded_slowdown: float | None = None
    makespan_s: float | None = None
    p95_submitted_late_s: Annotated[
        float | None, Meta(description="95th percentile of the delay of submissions against the trace.")
    ] = None
    mean_ran_longer_s: Annotated[
        float | None, Meta(description="How much longer jobs held nodes than in the trace: start of steps, clean-up.")
    ] = None


class Agreement(Struct, kw_only=True, frozen=True):
    """How far the starts of one job are apart, between all pairs of complete runs."""

    pairs: int
    median_start_s: Annotated[float, Meta(description="Median of the absolute difference of starts.")]
    within_5_s: Annotated[float, Meta(description="Share of starts at most 5 s apart.")]
    within_60_s: Annotated[float, Meta(description="Share of starts at most 60 s apart.")]


class EngineDocument(Struct, kw_only=True, frozen=True, omit_defaults=True):
    """An ensemble of runs on a real slurmctld."""

    version: str
    engine: Annotated[str, Meta(description="slurmctld and its version.")]
    trace: Annotated[str, Meta(description="Source of the jobs, in words.")]
    inputs_sha256: Annotated[str, Meta(description="Hash of the jobs, the cluster and the speed.")]
    cluster: str
    nodes: int
    cpus: int
    gpus: int
    jobs: int
    speed: Annotated[int, Meta(description="Simulated seconds per real second.")]
    runs: list[RealRun]
    mean_wait_s: Spread | None = None
    p95_wait_s: Spread | None = None
    agreement: Agreement | None = None
    left_out: Annotated[dict[str, int], Meta(description="Jobs that were not submitted, by reason.")] = {}
    not_played: Annotated[list[str], Meta(description="Parts of the site that the runs do not model.")] = []
