"""Family job: what happens to runs, and the verdicts on their submission."""

from collections.abc import Mapping
from typing import Annotated, Final, Literal

from msgspec import Meta

from gpuwaste.core.codec import Int64, Number
from gpuwaste.jobs.events.event_kind import EventKind, OfRun
from gpuwaste.jobs.job_event import HistoryEventKind as HistoryKind
from gpuwaste.jobs.job_event import RunUse
from gpuwaste.jobs.verdict import Verdict
from gpuwaste.slurm.accounting.job_record import JobRecord


class RunTold(OfRun, frozen=True):
    """A run with its data in accounting and the ledger when the event is delivered."""

    start: Annotated[Int64, Meta(description="UTC seconds; of job.submitted the submission.")]
    job: Annotated[JobRecord | None, Meta(description="null where accounting no longer has this run.")]
    use: Annotated[RunUse | None, Meta(description="null before the end, and where the use of its GPUs is unknown.")]
    script: Annotated[str, Meta(description="The hash of the batch script, where it has a verdict.")] = ""


class JobRescored(OfRun, frozen=True):
    """A running job that was predicted again, as if it were submitted at that instant."""

    user: str
    account: str
    moment: Annotated[Literal["start", "early"], Meta(description="early: 10 minutes after the start.")]
    p: Annotated[Mapping[str, float], Meta(description="Probability by target, 0 to 1.")]
    model_hash: Annotated[str, Meta(description="Empty: from job history, without a model.")]


class JobKept(OfRun, frozen=True):
    """A run for which the rules wait."""

    user: str
    account: str
    asked_by: Annotated[str, Meta(description="The owner, a coordinator of the account, or an operator.")]
    since: Annotated[Int64, Meta(description="UTC seconds.")]
    until: Annotated[Int64, Meta(description="UTC seconds.")]
    reason: str


class LimitNear(OfRun, frozen=True):
    """A running job that will probably reach its time limit."""

    user: str
    account: str
    limit_at: Annotated[Int64, Meta(description="When Slurm ends it, UTC seconds.")]
    time_limit_s: Annotated[Int64, Meta(description="Seconds.")]
    p: Annotated[Number, Meta(description="The probability that it reaches its limit, 0 to 1.")]
    usual: Annotated[bool, Meta(description="Whether all of the user's last jobs like it reached their limits.")]
    model_hash: Annotated[str, Meta(description="Empty: from job history, without a model.")]


KINDS: Final = (
    EventKind("job.submitted", "A run was seen waiting; one that was first seen running has none.", RunTold),
    EventKind("job.verdict", "The advisor gave advice on a submission, or would have.", Verdict),
    EventKind("job.started", "A run has started.", RunTold),
    EventKind("job.rescored", "A running job was predicted again, at its start or 10 minutes later.", JobRescored),
    EventKind("job.limit_near", "A running job will probably reach its time limit.", LimitNear),
    EventKind("job.kept", "A person requested that the rules wait for a running job.", JobKept),
    EventKind("job.ended", "A run has ended.", RunTold),
    EventKind("job.ledger", "New data on the GPUs of a run that had ended.", RunTold),
)
OF_RUN: Final[Mapping[HistoryKind, str]] = {
    "submitted": "job.submitted",
    "started": "job.started",
    "ended": "job.ended",
    "ledger": "job.ledger",
}
