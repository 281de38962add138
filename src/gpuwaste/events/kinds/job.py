"""Family job: what happens to runs, and what was said of their submission."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Final

from msgspec import Meta

from gpuwaste.core.codec import Int64
from gpuwaste.core.job import JobRecord
from gpuwaste.core.job_event import EventKind as HistoryKind
from gpuwaste.core.job_event import RunUse
from gpuwaste.core.verdict import Verdict
from gpuwaste.events.event_kind import EventKind


@dataclass(frozen=True, slots=True)
class RunTold:
    """A run, as accounting and the ledger know it when the event is handed over."""

    cluster: str
    jobid: Int64
    start: Annotated[Int64, Meta(description="UTC seconds; of job.submitted the submission.")]
    job: Annotated[JobRecord | None, Meta(description="null where accounting tells this run no more.")]
    use: Annotated[RunUse | None, Meta(description="null before the end, and where nothing is known of its GPUs.")]
    script: Annotated[str, Meta(description="The hash of the batch script, where a verdict was said of it.")] = ""


KINDS: Final = (
    EventKind("job.submitted", "A run was seen waiting; one that was first seen running has none.", RunTold),
    EventKind("job.verdict", "The advisor said something of a submission, or would have.", Verdict),
    EventKind("job.started", "A run has started.", RunTold),
    EventKind("job.ended", "A run has ended.", RunTold),
    EventKind("job.ledger", "More is known of the GPUs of a run that had ended.", RunTold),
)
OF_RUN: Final[Mapping[HistoryKind, str]] = {
    "submitted": "job.submitted",
    "started": "job.started",
    "ended": "job.ended",
    "ledger": "job.ledger",
}
