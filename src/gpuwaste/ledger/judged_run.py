"""JudgedRun: the ledger of one run as a row, and RunSums: sums over users, accounts and clusters."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final, Self

from gpuwaste.ledger.findings.many_small_jobs import SmallRun, groups
from gpuwaste.ledger.ledger import Level
from gpuwaste.ledger.tally import Tally, seconds
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.store.database import Database

_COUNTS: Final = (
    "jobs", "running", "beyond", "conflicts", "under_jobs", "under_devices", "under_ms", "asked_jobs", "asked_devices",
)  # fmt: skip
Group = tuple[str, str, str, str]
"""User, account, partition and cluster."""


@dataclass(frozen=True, slots=True)
class JudgedRun:
    """One run; `own` are its own GPUs, `shared` those it shared, `causes` are its findings as JSON objects."""

    key: RunKey
    end: int | None  # None: the run is open
    user: str
    account: str
    partition: str
    printed_id: str
    array_job_id: int | None
    array_task_id: int | None
    name: str
    state: str
    gpus: int
    gpu_type: str
    whole_node: bool
    beyond: int  # GPUs that agents reported beyond accounting's count
    conflict: bool
    own: Tally
    shared: Tally | None
    level_devices: Sequence[int]  # by Level, as level_ms
    level_ms: Sequence[int]
    under_devices: int
    under_ms: int
    asked_devices: int  # devices to which the rule of under-use applies
    cpu_used_s: float | None
    cpu_held_s: float | None
    memory_ratio: float | None
    small: SmallRun | None
    causes: Sequence[dict[str, Any]]

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Self:
        """Return the run of a row of table judged."""
        key = RunKey(row["cluster"], row["job_id"], row["run_start"])
        values = {name: row[name] for name in _FIELDS}
        small, shared = row["small"], row["shared"]
        values |= {"own": Tally.of_own(row), "shared": None if shared is None else Tally(**shared)}
        values["causes"] = json.loads(row["causes"]) if row["causes"] else []
        if small is not None:
            open_ = row["end"] is None
            values["small"] = SmallRun(
                key, row["user"], values["own"].alloc_ms, row["whole_node"], running=open_, **small
            )
        return cls(key, **values)

    @property
    def running(self) -> bool:
        """Whether the run has not ended: its judgement is provisional."""
        return self.end is None


_FIELDS: Final = tuple(f.name for f in fields(JudgedRun) if f.name != "key")


def judged_last(db: Database) -> list[JudgedRun]:
    """Return the runs that were judged last on a connection (ledger/run_judging.py), in their order."""
    return [JudgedRun.from_row(row) for row in db.rows("ledger_judged", {"rules": None})]


def findings_json(runs: Iterable[JudgedRun]) -> list[dict[str, Any]]:
    """Return the findings of runs, and of several together, the largest waste first."""
    runs = list(runs)
    found = [cause for run in runs for cause in run.causes]
    found += [finding.to_json() for finding in groups([run.small for run in runs if run.small is not None])]
    return named(sorted(found, key=finding_order), {(r.key.cluster, r.key.job_id): r.printed_id for r in runs})


def finding_order(finding: Mapping[str, Any]) -> tuple[float, str, list[tuple[str, int, int]]]:
    """Return the sort key of findings: the largest waste first."""
    runs = [(run["cluster"], run["jobid"], run["start"]) for run in finding["runs"]]
    return -finding["wasted_gpu_s"], finding["kind"], runs


def named(findings: Iterable[dict[str, Any]], printed: Mapping[tuple[str, int], str]) -> list[dict[str, Any]]:
    """Return findings with the ids that Slurm prints in addition to the raw ones."""
    return [
        finding
        | {
            "runs": [
                {**run, "printed_id": printed.get((run["cluster"], run["jobid"]), str(run["jobid"]))}
                for run in finding["runs"]
            ]
        }
        for finding in findings
    ]


@dataclass(slots=True)
class RunSums:
    """Sums over some runs: GPU-time of their own and shared GPUs, and counts."""

    own: Tally = field(default_factory=Tally)
    shared: Tally = field(default_factory=Tally)
    jobs: int = 0
    running: int = 0
    beyond: int = 0
    conflicts: int = 0
    under_jobs: int = 0
    under_devices: int = 0
    under_ms: int = 0
    asked_jobs: int = 0
    asked_devices: int = 0
    level_devices: list[int] = field(default_factory=lambda: [0] * len(Level))
    level_ms: list[int] = field(default_factory=lambda: [0] * len(Level))

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> Self:
        """Return the counts of a row of query judged_counts or day_totals, without GPU-time."""
        return cls(**{name: row[name] for name in (*_COUNTS, "level_devices", "level_ms") if name in row})

    @classmethod
    def of(cls, sums: Iterable["RunSums"]) -> Self:
        """Add up sums."""
        total = cls()
        for other in sums:
            total.own.add_tally(other.own)
            total.shared.add_tally(other.shared)
            for name in _COUNTS:
                setattr(total, name, getattr(total, name) + getattr(other, name))
            for mine, theirs in ((total.level_devices, other.level_devices), (total.level_ms, other.level_ms)):
                mine[:] = map(sum, zip(mine, theirs, strict=True))
        return total

    def count(self, run: JudgedRun) -> None:
        """Count a run and its devices (query judged_counts)."""
        self.jobs += 1
        self.running += run.running
        self.beyond += run.beyond > 0
        self.conflicts += run.conflict
        self.under_jobs += run.under_devices > 0
        self.under_devices += run.under_devices
        self.under_ms += run.under_ms
        self.asked_jobs += run.asked_devices > 0
        self.asked_devices += run.asked_devices
        for mine, theirs in ((self.level_devices, run.level_devices), (self.level_ms, run.level_ms)):
            mine[:] = map(sum, zip(mine, theirs, strict=True))

    def levels_json(self) -> dict[str, dict[str, Any]]:
        """Return devices and GPU-seconds by the level of each device's mean."""
        found = zip(Level, self.level_devices, self.level_ms, strict=True)
        return {str(level): {"devices": devices, "gpu_s": seconds(ms)} for level, devices, ms in found}

    def under_used_json(self) -> dict[str, Any]:
        """Return how many jobs have an under-used device, these devices and their time, and how many were judged."""
        return {
            "jobs": self.under_jobs,
            "devices": self.under_devices,
            "gpu_s": seconds(self.under_ms),
            "judged_jobs": self.asked_jobs,
            "judged_devices": self.asked_devices,
        }


def group_of(row: Mapping[str, Any]) -> Group:
    """Return the group of a row."""
    return row["user"], row["account"], row["partition"], row["cluster"]


def add_reasons(sums: Mapping[Group, RunSums], rows: Iterable[Mapping[str, Any]]) -> None:
    """Add unknown and exempt time by reason, as query judged_reasons returns it."""
    for row in rows:
        tally = getattr(sums[group_of(row)], row["of"])
        getattr(tally, row["what"])[row["reason"]] = row["ms"]


def added(sums: dict[Group, RunSums], more: dict[Group, RunSums]) -> dict[Group, RunSums]:
    """Return the sums of both, group by group."""
    both = {group: RunSums.of((sums[group], more[group])) for group in sums.keys() & more.keys()}
    return sums | more | both
