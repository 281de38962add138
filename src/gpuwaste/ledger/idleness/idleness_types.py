"""The answer to whether a job or a node is idle, with its evidence."""

from collections.abc import Mapping
from typing import Annotated, Final, Literal

from msgspec import Meta, Struct, field, to_builtins

from gpuwaste.core.fields import Document, MaybeUtc, Recorded, Table

Idle = Literal["yes", "no", "unknown"]
IdleReason = Literal[
    # no
    "active",
    "short",
    "kept",
    "suspended",
    "pending",
    "ended",
    "no_gpus_held",
    "replaced",
    # unknown
    "not_reported",
    "stale",
    "gap",
    "clock",
    "unattributed",
    "mig",
    "shared",
    "count",
    "placement",
    "state",
    "cpus_only",
    "overdue",
    "accounting",
    "slurmctld",
    "mismatch",
    "free_gpus",
]
REASONS: Final[Mapping[IdleReason, str]] = {
    "active": "a GPU was active within for_s",
    "short": "the GPUs are idle, but not yet for for_s",
    "kept": "the owner keeps the job",
    "suspended": "the run is suspended",
    "pending": "a run of the job is pending",
    "ended": "no run of the job is running",
    "no_gpus_held": "a run without GPUs is on the node",
    "replaced": "slurmctld has another run of this job, or the run has ended there",
    "not_reported": "no agent reported a GPU of the run",
    "stale": "the last report of a GPU is too old",
    "gap": "part of the idle time was not measured",
    "clock": "the clock of the node's agent is not known, or too far from the hub's",
    "unattributed": "it is not certain that the GPU belongs to the run",
    "mig": "a GPU is a MIG instance",
    "shared": "the run holds parts of GPUs",
    "count": "agents report another number of GPUs than accounting has",
    "placement": "agents report other GPUs by node than slurmctld has",
    "state": "the run is in a state in which it need not use its GPUs",
    "cpus_only": "the run holds no GPU: gpuwaste does not measure CPUs",
    "overdue": "the run is past its limit by more than a day: accounting has lost its end",
    "accounting": "accounting was not read recently, or slurmdbd is behind",
    "slurmctld": "slurmctld does not answer, or does not have the run or the node",
    "mismatch": "accounting and slurmctld have other runs on the node",
    "free_gpus": "more GPUs are held than the node has",
}
"""What each reason means."""
NO_REASONS: Final = frozenset[IdleReason](
    {"active", "short", "kept", "suspended", "pending", "ended", "no_gpus_held", "replaced"}
)
"""The reasons that make an answer `no`; any other makes it `unknown`."""

_Reasons = Annotated[list[IdleReason], Meta(description="Why the answer is not yes; empty for yes.")]
_Since = Annotated[
    int | None,
    Meta(description="Idle and known from here to `as_of`, UTC seconds of the hub's clock; null: not known to be."),
]
_AsOf = Annotated[
    int | None, Meta(description="Up to here the answer holds, UTC seconds of the hub's clock; null: nothing is known.")
]
_Answer = Annotated[Idle, Meta(description="unknown is never yes.")]


class IdleGpu(Struct, kw_only=True, frozen=True):
    """One GPU of a run."""

    node: str
    gpu_uuid: Annotated[str, Meta(description="Empty where no agent reported it.")]
    last_active: Annotated[int | None, Meta(description="By its agent's clock, UTC seconds; null: never in this run.")]
    since: _Since
    as_of: _AsOf
    age_s: Annotated[int | None, Meta(description="Age of `as_of`, seconds.")]
    map_source: Annotated[str, Meta(description="Source of the GPU's job, as in an hour's row.")]
    confidence: str
    reasons: _Reasons


class IdleRun(Struct, kw_only=True, frozen=True):
    """One run, by its full key: a requeued job has several."""

    cluster: str
    job_id: Annotated[int, Meta(description="Slurm's raw number.")]
    start: Annotated[int | None, Meta(description="UTC seconds; null: not started.")]
    printed_id: Annotated[str, Meta(description="As Slurm prints it.")] = field(name="jobid")
    user: str
    state: Annotated[str, Meta(description="In accounting.")]
    gpus_held: Annotated[int | None, Meta(description="GPUs in accounting; null: not known.")]
    answer: _Answer
    since: _Since
    as_of: _AsOf
    kept_until: MaybeUtc = None
    reasons: _Reasons
    gpus: list[IdleGpu]


class IdlenessDocument(Document, kw_only=True, frozen=True):
    """Whether a job or a node is idle.

    `yes` states: from `since` to `as_of`, which are at least `for_s` seconds apart, each run named here was running,
    each of its GPUs was measured without a break, and none was active. It states nothing about the time after `as_of`.
    The answer must not be used after `valid_until`.
    """

    document: Literal["idleness"] = "idleness"
    schema: int = 1
    recorded: Recorded
    generated: Annotated[int, Meta(description="When the answer was made, UTC seconds of the hub's clock.")]
    about: Literal["job", "node"]
    name: Annotated[str, Meta(description="The job as it was requested, or the node.")]
    cluster: str
    nonce: Annotated[str, Meta(description="The request's; empty where it had none.")] = ""
    for_s: Annotated[int, Meta(description="Idle time that makes the answer yes, seconds.")]
    max_age_s: Annotated[int, Meta(description="Largest age of `as_of` for yes, seconds.")]
    answer: _Answer
    since: _Since
    as_of: _AsOf
    idle_s: Annotated[int | None, Meta(description="From `since` to `as_of`, seconds.")]
    valid_until: Annotated[int, Meta(description="Not to be used after this, UTC seconds of the hub's clock.")]
    valid_s: Annotated[
        int, Meta(description="The same from `generated` on: count it from before the request was sent.")
    ]
    reasons: _Reasons
    runs: Annotated[list[IdleRun], Meta(description="What the answer is about: runs that have not ended.")]
    gpus: Annotated[int | None, Meta(description="Of a node: GPUs in Slurm; null: not known.")] = None
    free_gpus: Annotated[int | None, Meta(description="Of a node: GPUs that no run holds, by Slurm.")] = None
    accounting_read: Annotated[int | None, Meta(description="Accounting was read up to this time, UTC seconds.")]
    slurmctld_read: Annotated[
        int | None,
        Meta(description="When slurmctld was queried, UTC seconds; null: it was not needed, or did not answer."),
    ]

    def table(self, _: str = "") -> Table:
        """Return a row for each GPU of each run."""
        of_run = ("cluster", "jobid", "start", "user", "state")
        of_gpu = [name for name in IdleGpu.__struct_encode_fields__ if name != "reasons"]
        rows = (
            {
                **{name: run[name] for name in of_run},
                **gpu,
                "reasons": ",".join(gpu["reasons"]),
                "answer": run["answer"],
            }
            for run in map(to_builtins, self.runs)
            for gpu in run["gpus"]
        )
        return (*of_run, "answer", *of_gpu, "reasons"), rows
