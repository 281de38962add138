"""AccountedRun: a JobRecord with what only analytics reads of accounting; no part of the history stream."""

from dataclasses import dataclass
from typing import Annotated, Final

from msgspec import Meta

from gpuwaste.core.codec import Int64
from gpuwaste.slurm.accounting.job import JobRecord

MAX_STEPS: Final = 1000  # kept of a run; n_steps counts all
MAX_TEXT: Final = 200  # characters kept of each text


@dataclass(frozen=True, slots=True)
class JobDetails:
    """What accounting tells of a run for analytics; None is "not known", "" is "none".

    The sums are over the steps that one query lists: sacct leaves out those that ended before its window.
    """

    eligible: Annotated[Int64 | None, Meta(description="UTC seconds.")] = None
    priority: Int64 | None = None
    flags: Annotated[str | None, Meta(description="How it started: SchedSubmit, SchedMain, SchedBackfill; ...")] = None
    reason: Annotated[str | None, Meta(description="What it waited for last.")] = None
    constraints: str | None = None
    reservation: str | None = None
    n_steps: Annotated[Int64 | None, Meta(description="Steps of srun; batch and extern are none.")] = None
    energy_j: Annotated[Int64 | None, Meta(description="The job's own energy, else its largest step's.")] = None
    disk_read_b: Annotated[Int64 | None, Meta(description="Sum over the steps.")] = None
    disk_write_b: Annotated[Int64 | None, Meta(description="Sum over the steps.")] = None
    program: Annotated[str | None, Meta(description="What its comment ties it to: HASH or HASH,steps=N.")] = None


@dataclass(frozen=True, slots=True)
class StepRecord:
    """One step that has ended; the extern step is left out."""

    step: Annotated[str, Meta(description="A number, batch or interactive.")]
    name: str
    start: Annotated[Int64 | None, Meta(description="UTC seconds.")]
    elapsed_s: Int64 | None
    tasks: Int64 | None
    max_rss_b: Int64 | None
    state: str
    exit_code: Int64 | None
    exit_signal: Int64 | None


@dataclass(frozen=True, slots=True)
class AccountedRun(JobRecord):
    """One run with its details and its ended steps."""

    details: JobDetails = JobDetails()
    steps: tuple[StepRecord, ...] = ()
