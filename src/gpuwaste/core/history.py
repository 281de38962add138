"""The history stream: what happened to runs, in the order in which the hub learned it (CONTRACTS.md, "History stream").

A run that was seen waiting gives `submitted`; every run that started gives `started`, every run that ended gives
`ended`; `ledger` says that more is known of its GPUs. A run that had started when accounting first told it has no
`submitted`: its `started` (or `ended`) carries the same request.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Final, Literal, get_args, get_type_hints

from gpuwaste.core.errors import ParseError
from gpuwaste.core.job import JobRecord
from gpuwaste.core.run import RunKey

EventKind = Literal["submitted", "started", "ended", "ledger"]
_KINDS: Final[tuple[str, ...]] = get_args(EventKind)
_FIELDS: Final = tuple(f.name for f in fields(JobRecord))
_TYPES: Final = {name: getattr(kind, "__name__", str(kind)) for name, kind in get_type_hints(JobRecord).items()}
_LARGEST: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class RunUse:
    """What the ledger says of one ended run's own GPUs.

    `used_ratio` is their mean utilization over the known time, 0..1; `gpus_active` how many of them have a mean of 5 %
    and more; `coverage` the known share of the allocation without suspension, 0..1.
    """

    used_ratio: float
    gpus_active: int
    coverage: float


@dataclass(frozen=True, slots=True)
class HistoryEvent:
    """One entry; `job` and `use` are the run as it is known when the stream is read, None where they are not known.

    `use` comes with `ended` and `ledger` alone, once the run has ended. `script` is the hash of the job's batch script,
    where a verdict was said of it.
    `run_key` is the run's key at the event: of `submitted` its last part is the submission. `at_utc` is when it
    happened, of `ledger` when the hub learned it; UTC seconds.
    """

    seq: int
    kind: EventKind
    run_key: RunKey
    at_utc: int
    job: JobRecord | None
    use: RunUse | None = None
    script: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the event as GET /v1/history answers it."""
        run = self.run_key
        return {
            "seq": self.seq,
            "kind": self.kind,
            "cluster": run.cluster,
            "jobid": run.job_id,
            "start": run.start,
            "at": self.at_utc,
            "job": None if self.job is None else _job_json(self.job),
            "use": None if self.use is None else asdict(self.use),
            "script": self.script,
        }


def _job_json(job: JobRecord) -> dict[str, Any]:
    """Return a run; an unknown number of GPUs is absent: a reader one version back takes no null."""
    return {name: getattr(job, name) for name in _FIELDS if name != "gpus" or job.gpus is not None}


def event_from_json(data: object) -> HistoryEvent:
    """Read one event of GET /v1/history; what a newer hub adds is ignored. Raises ParseError."""
    try:
        if not isinstance(data, Mapping) or data["kind"] not in _KINDS:
            raise ParseError("history: an event of a kind that this version does not know")
        job, use = data["job"], data.get("use")
        return HistoryEvent(
            _whole(data["seq"]),
            data["kind"],
            RunKey(str(data["cluster"]), _whole(data["jobid"]), _whole(data["start"])),
            _whole(data["at"]),
            None if job is None else JobRecord(**{name: _of_type(name, job[name]) for name in _FIELDS if name in job}),
            None
            if use is None
            else RunUse(_number(use["used_ratio"]), _whole(use["gpus_active"]), _number(use["coverage"])),
            str(data.get("script", "")),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ParseError(f"history: an event lacks a part or has a wrong one: {str(error)[:200]}") from error


def _whole(value: Any) -> int:
    if type(value) is not int or not -_LARGEST <= value <= _LARGEST:
        raise TypeError(f"no whole number: {str(value)[:40]!r}")
    return value


def _number(value: Any) -> float:
    if type(value) not in {int, float} or not -_LARGEST <= value <= _LARGEST:  # NaN is in no range
        raise TypeError(f"no number: {str(value)[:40]!r}")
    return float(value)


def _of_type(name: str, value: Any) -> Any:
    """Return a field of a JobRecord as it is declared. Raises TypeError."""
    declared = _TYPES[name]
    if value is None and declared.endswith("| None"):
        return None
    kind = declared.removesuffix(" | None")
    if kind == "int":
        return _whole(value)
    if kind == "float":
        return _number(value)
    if type(value).__name__ != kind:
        raise TypeError(f"{name} is {str(value)[:40]!r}")
    return value
