"""JobRecord (one run of one job), AccountedRun (with the fields that only analytics reads), and the sums over steps.

Each field of a JobRecord is marked with the moment from which it can be known. The details of an AccountedRun are not
part of the history stream. A number that no store can hold is damage, and only its own row is lost.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Final, TypeVar

from msgspec import Meta

from gpuwaste.core.codec import Int64, Number, annotated
from gpuwaste.core.errors import ParseError
from gpuwaste.core.job_states import ENDED
from gpuwaste.slurm.accounting.accounted_use import AccountedUse
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.slurm.submit.program_tie import tie_of

MAX_STEPS: Final = 1000  # steps kept per run; n_steps counts all
MAX_TEXT: Final = 200  # characters kept per text
_SMALL: Final = ("restarts", "n_nodes", "cpus", "gpus", "exit_code", "exit_signal")
_LARGE: Final = (
    *("job_id", "submit", "array_job_id", "array_task_id", "het_job_id", "het_offset", "time_limit_s", "start"),
    *("mem_req_b", "end", "elapsed_s", "suspended_s", "total_cpu_s", "max_rss_b"),
)
_LIMITS: Final = (*((name, 1 << 31) for name in _SMALL), *((name, 1 << 62) for name in _LARGE))
UNKEPT: Final = "extern"  # holds what prolog and ssh start, not the job's own work
_NONE: Final = frozenset({"none", "(null)", "n/a"})
# What sacct prints, and slurmrestd's name for it; the misspelling is Slurm's, up to 23.02.
_FLAGS: Final = {
    "StartRecieved": "StartReceived",
    "START_RECEIVED": "StartReceived",
    "STARTED_ON_SUBMIT": "SchedSubmit",
    "STARTED_ON_SCHEDULE": "SchedMain",
    "STARTED_ON_BACKFILL": "SchedBackfill",
    "SchedNotSet": "",
    "NONE": "",
    "CLEAR_SCHEDULING": "",  # the mask of the three in v0.0.38
}


class KnownAt(StrEnum):
    """The moment from which a field of a JobRecord can be known."""

    SUBMIT = "submit"
    START = "start"
    END = "end"


@dataclass(frozen=True, slots=True)
class JobRecord:
    """One run of one job as in accounting; None is "not known"."""

    cluster: Annotated[str, KnownAt.SUBMIT]
    job_id: Annotated[Int64, KnownAt.SUBMIT]
    submit: Annotated[Int64, KnownAt.SUBMIT, Meta(description="UTC seconds.")]
    printed_id: Annotated[str, KnownAt.SUBMIT, Meta(description="The job id as Slurm prints it: 3_1, 4+1.")] = ""
    array_job_id: Annotated[Int64 | None, KnownAt.SUBMIT] = None
    array_task_id: Annotated[Int64 | None, KnownAt.SUBMIT] = None
    het_job_id: Annotated[Int64 | None, KnownAt.SUBMIT] = None
    het_offset: Annotated[Int64 | None, KnownAt.SUBMIT] = None
    name: Annotated[str, KnownAt.SUBMIT] = ""
    user: Annotated[str, KnownAt.SUBMIT] = ""
    account: Annotated[str, KnownAt.SUBMIT] = ""
    group: Annotated[str, KnownAt.SUBMIT] = ""
    partition: Annotated[str, KnownAt.SUBMIT] = ""
    qos: Annotated[str, KnownAt.SUBMIT] = ""
    time_limit_s: Annotated[Int64 | None, KnownAt.SUBMIT] = None
    req_tres: Annotated[str, KnownAt.SUBMIT] = ""
    submit_line: Annotated[str, KnownAt.SUBMIT] = ""
    interactive: Annotated[bool, KnownAt.SUBMIT] = False  # salloc, or srun without a batch script
    # Its last verdict\'s; Slurm 22.05 has it in accounting at the end.
    verdict_id: Annotated[str, KnownAt.SUBMIT] = ""
    start: Annotated[Int64 | None, KnownAt.START, Meta(description="UTC seconds.")] = None
    restarts: Annotated[Int64 | None, KnownAt.START] = None
    nodes: Annotated[str, KnownAt.START, Meta(description="Hostlist as Slurm prints it.")] = ""
    n_nodes: Annotated[Int64 | None, KnownAt.START] = None
    cpus: Annotated[Int64 | None, KnownAt.START] = None
    gpus: Annotated[Int64 | None, KnownAt.START, Meta(description="Whole GPUs in the allocation, 0 for none.")] = None
    gpu_type: Annotated[str, KnownAt.START] = ""
    alloc_tres: Annotated[str, KnownAt.START] = ""
    mem_req_b: Annotated[Int64 | None, KnownAt.START] = None
    end: Annotated[Int64 | None, KnownAt.END, Meta(description="UTC seconds.")] = None
    elapsed_s: Annotated[Int64 | None, KnownAt.END] = None
    suspended_s: Annotated[Int64, KnownAt.END] = 0
    state: Annotated[str, KnownAt.END] = ""
    exit_code: Annotated[Int64 | None, KnownAt.END] = None
    exit_signal: Annotated[Int64 | None, KnownAt.END] = None
    total_cpu_s: Annotated[Number | None, KnownAt.END] = None
    max_rss_b: Annotated[Int64 | None, KnownAt.END] = None

    @property
    def run_key(self) -> RunKey:
        """The run's identity: by start, or by submit where it never started."""
        return RunKey(self.cluster, self.job_id, self.submit if self.start is None else self.start)

    @property
    def ended(self) -> bool:
        """Whether the state is terminal."""
        return self.state in ENDED


_Run = TypeVar("_Run", bound=JobRecord)


def known_at(name: str) -> KnownAt:
    """Return the moment from which the named field of a JobRecord is known."""
    moments: dict[str, KnownAt] = {field.name: marks[0] for field, _, marks in annotated(JobRecord)}
    return moments[name]


@dataclass(frozen=True, slots=True)
class JobDetails:
    """The fields of a run in accounting that analytics reads; None is "not known", "" is "none".

    The sums are over the steps that one query lists: sacct leaves out steps that ended before its window.
    """

    eligible: Annotated[Int64 | None, Meta(description="UTC seconds.")] = None
    priority: Int64 | None = None
    flags: Annotated[str | None, Meta(description="Slurm's flags, such as SchedMain or SchedBackfill.")] = None
    reason: Annotated[str | None, Meta(description="Slurm's last reason for the wait.")] = None
    constraints: str | None = None
    reservation: str | None = None
    n_steps: Annotated[Int64 | None, Meta(description="Number of srun steps, without batch and extern.")] = None
    energy_j: Annotated[Int64 | None, Meta(description="Energy of the job; if unknown, of its largest step.")] = None
    disk_read_b: Annotated[Int64 | None, Meta(description="Sum over the steps.")] = None
    disk_write_b: Annotated[Int64 | None, Meta(description="Sum over the steps.")] = None
    program: Annotated[str | None, Meta(description="The program in its comment: HASH or HASH,steps=N.")] = None


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
    """One run with its details, its ended steps, and what accounting has of the use of its GPUs."""

    details: JobDetails = JobDetails()
    steps: tuple[StepRecord, ...] = ()
    uses: tuple[AccountedUse, ...] = ()


def within(job: _Run) -> _Run:
    """Return the run. Raises ParseError naming a number that is out of Slurm's range."""
    for name, limit in _LIMITS:
        value = getattr(job, name)
        if value is not None and not -limit < value < limit:
            raise ParseError(f"{name}: {value:.3g} is larger than any number of Slurm")
    return job


class StepSums:
    """Sums over a run's steps, and the first ended ones; constant memory for any number of steps."""

    def __init__(self) -> None:
        self.kept: list[StepRecord] = []
        self.energy_j: int | None = None
        self.disk_read_b: int | None = None
        self.disk_write_b: int | None = None
        self._numbered: int | None = None

    @property
    def n_steps(self) -> int | None:
        """Number of steps that srun started; None where no step of any kind is listed."""
        return self._numbered

    def add(
        self, step: str, record: StepRecord | None, energy_j: int | None, read_b: int | None, write_b: int | None
    ) -> None:
        """Add a step; `record` is None where it has not ended."""
        self._numbered = (self._numbered or 0) + step[:1].isdigit()
        # Steps overlap, and each measures its entire nodes: their sum counts the same energy several times.
        self.energy_j = max(filter(None, (self.energy_j, energy_j)), default=None)
        self.disk_read_b = _sum(self.disk_read_b, read_b)
        self.disk_write_b = _sum(self.disk_write_b, write_b)
        if record is not None and step != UNKEPT and len(self.kept) < MAX_STEPS:
            self.kept.append(record)


def program_of(*texts: str) -> str:
    """Return the program named by the first of the user's texts with a tie, "" for none; no other text is kept."""
    return next((tie.text() for text in texts if (tie := tie_of(text)) is not None), "")


def short(text: str) -> str:
    """Return a text cut to the length that is kept."""
    return text[:MAX_TEXT]


def own_text(text: str) -> str:
    """Return a text cut to the length that is kept; Slurm's word for "none" becomes ""."""
    return "" if text.lower() in _NONE else short(text)


def flag_text(words: Iterable[str]) -> str:
    """Return job flags as sacct prints them, whatever their source."""
    return short(",".join(filter(None, (_FLAGS.get(word, word) for word in words))))


def _sum(total: int | None, more: int | None) -> int | None:
    return total if more is None else more + (total or 0)
