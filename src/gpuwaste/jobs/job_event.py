"""The history stream: events of runs, in the order in which the hub learned them (CONTRACTS.md, "History stream").

A run that was seen pending has `submitted`; every run that started has `started`, every run that ended has `ended`;
`ledger` means that more is known of its GPUs. A run that had started when it first was in accounting has no
`submitted`: its `started` (or `ended`) carries the same request.
"""

from dataclasses import dataclass
from operator import attrgetter
from typing import Annotated, Any, Final, Literal

from msgspec import Meta, to_builtins

from gpuwaste.core.codec import OPTIONAL, Codec, Int64, Number, Wire
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.run_key import RunKey

HistoryEventKind = Literal["submitted", "started", "ended", "ledger"]
ScriptSays = Literal["same", "changed", "unknown"]  # a script compared with the one of the verdict
EndRule = Literal["accounting", "submit + run"]  # how the ends of a log's runs are known


@dataclass(frozen=True, slots=True)
class RunUse:
    """The ledger's current result for the own GPUs of a run that has ended."""

    used_ratio: Annotated[Number, Meta(description="Mean utilization of the run's GPUs over the known time, 0 to 1.")]
    gpus_active: Annotated[
        Int64,
        Meta(
            description="GPUs whose mean utilization reaches `below_pct` of `under_use`; at least 1 where any was used."
        ),
    ]
    coverage: Annotated[Number, Meta(description="Known share of the allocation without suspension, 0 to 1.")]
    gpus_used: Annotated[
        Int64 | None, Meta(description="GPUs that were ever above 0 %; absent if the hub does not count them.")
    ] = None


def _job_json(job: JobRecord | None) -> tuple[dict[str, Any] | None]:
    """Return a run; an unknown number of GPUs is absent."""
    found = to_builtins(job)
    if job is not None and job.gpus is None:
        del found["gpus"]
    return (found,)


def _use_json(use: RunUse | None) -> tuple[dict[str, Any] | None]:
    """Return a run's use as counted: GPUs that were not counted are absent."""
    found = to_builtins(use)
    if use is not None and use.gpus_used is None:
        del found["gpus_used"]
    return (found,)


_RUN: Final = Wire(
    {
        "cluster": str,
        "jobid": Int64,
        "start": Annotated[
            Int64, Meta(description="The last part of the run key, UTC seconds; of submitted the submission.")
        ],
    },
    RunKey,
    attrgetter("cluster", "job_id", "start"),
)
_AT: Final = Wire(
    {"at": Annotated[Int64, Meta(description="When it happened; for ledger when the hub learned it. UTC seconds.")]},
    int,
    lambda at_utc: (at_utc,),
)
_JOB: Final = Wire(
    {"job": Annotated[JobRecord | None, Meta(description="null where accounting no longer has this run.")]},
    lambda job: job,
    _job_json,
)
_USE: Final = Wire(
    {
        "use": Annotated[
            RunUse | None,
            Meta(
                description="Of ended and ledger, once the run has ended and some use of its GPUs is known; else null."
            ),
        ]
    },
    lambda use: use,
    _use_json,
)


@dataclass(frozen=True, slots=True)
class HistoryEvent:
    """One entry; `job` and `use` are the run as known when the stream is read, None where they are not known."""

    seq: Int64
    kind: Annotated[
        HistoryEventKind,
        Meta(description="submitted: seen pending; runs that are first seen after their start have no such event."),
    ]
    run_key: Annotated[RunKey, _RUN]
    at_utc: Annotated[int, _AT]
    job: Annotated[JobRecord | None, _JOB]
    use: Annotated[RunUse | None, _USE] = None
    script: Annotated[
        str, OPTIONAL, Meta(description="The hash of the job's batch script, where it has a verdict.")
    ] = ""

    def to_json(self) -> dict[str, Any]:
        """Return the event as GET /v1/history returns it."""
        return EVENT_CODEC.to_json(self)


EVENT_CODEC: Final = Codec(HistoryEvent, "history: an event")


def event_from_json(data: object) -> HistoryEvent:
    """Read one event of GET /v1/history; additions of a newer hub are ignored. Raises ParseError."""
    return EVENT_CODEC.convert(data)
