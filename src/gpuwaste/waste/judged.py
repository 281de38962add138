"""JudgedRun: what the ledger says of one run, as a row: kept once for a settled run, made anew for an open one."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, Self

from gpuwaste.core.run import RunKey
from gpuwaste.core.text import storable
from gpuwaste.waste.efficiency import cpu_seconds, memory_ratio
from gpuwaste.waste.findings import causes
from gpuwaste.waste.findings.many_small_jobs import SmallRun, groups, small_run
from gpuwaste.waste.ledger import JobLedger, Level
from gpuwaste.waste.settings import LedgerSettings
from gpuwaste.waste.tally import Tally


@dataclass(frozen=True, slots=True)
class JudgedRun:
    """One run; `own` is of its own GPUs, `shared` of those it shared, `causes` are its findings as JSON objects."""

    cluster: str
    job_id: int
    run_start: int
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
    beyond: int  # GPUs that agents named and accounting did not give
    conflict: bool
    own: Tally
    shared: Tally | None
    level_devices: Sequence[int]  # by Level, as level_ms
    level_ms: Sequence[int]
    under_devices: int
    under_ms: int
    asked_devices: int  # to which the rule of under-use applies
    cpu_used_s: float | None
    cpu_held_s: float | None
    memory_ratio: float | None
    small: SmallRun | None
    causes: Sequence[dict[str, Any]]

    @classmethod
    def of(cls, ledger: JobLedger, settings: LedgerSettings) -> Self:
        """Sum a run up, and name the causes of its waste."""
        job, devices = ledger.job, ledger.devices
        under = [d for d in devices if d.under_used]
        used_s, held_s = cpu_seconds(ledger)
        return cls(
            **{name: getattr(job, name) for name in _OF_JOB},
            run_start=job.start or 0,
            gpus=len(devices) if job.gpus is None else job.gpus,
            whole_node=ledger.whole_node,
            beyond=ledger.beyond,
            conflict=any(d.use.confidence == "conflict" for d in devices),
            own=Tally.of(devices),
            shared=Tally.of(ledger.shared) if ledger.shared else None,
            level_devices=[sum(d.level == level for d in devices) for level in Level],
            level_ms=[sum(d.alloc_ms for d in devices if d.level == level) for level in Level],
            under_devices=len(under),
            under_ms=sum(d.alloc_ms for d in under),
            asked_devices=sum(d.under_used is not None for d in devices),
            cpu_used_s=used_s,
            cpu_held_s=held_s,
            memory_ratio=memory_ratio(ledger),
            small=small_run(ledger, settings),
            causes=[finding.to_json() for finding in causes(ledger, settings)],
        )

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Self:
        """Return the run of a row of table judged."""
        values = {name: row[name] for name in _FIELDS}
        small, shared = row["small"], row["shared"]
        values |= {"own": Tally(**row["own"]), "shared": None if shared is None else Tally(**shared)}
        values["causes"] = json.loads(row["causes"]) if row["causes"] else []
        if small is not None:
            key = RunKey(row["cluster"], row["job_id"], row["run_start"])
            open_ = row["end"] is None
            values["small"] = SmallRun(
                key, row["user"], values["own"].alloc_ms, row["whole_node"], running=open_, **small
            )
        return cls(**values)

    @property
    def key(self) -> RunKey:
        """The run's key."""
        return RunKey(self.cluster, self.job_id, self.run_start)

    @property
    def running(self) -> bool:
        """Whether the run has not ended: what is said of it is provisional."""
        return self.end is None

    def to_row(self, rules: int) -> dict[str, Any]:
        """Return the columns of table judged."""
        values = {name: getattr(self, name) for name in _FIELDS}
        return {
            **{name: storable(value) if isinstance(value, str) else value for name, value in values.items()},
            "rules": rules,
            "own": self.own.to_row(),
            "shared": None if self.shared is None else self.shared.to_row(),
            "small": None if self.small is None else self.small.to_row(),
            "cause_kinds": [cause["kind"] for cause in self.causes],
            "cause_s": [cause["wasted_gpu_s"] for cause in self.causes],
            "causes": storable(json.dumps(self.causes)) if self.causes else "",
        }


_FIELDS: Final = tuple(f.name for f in fields(JudgedRun))
_OF_JOB: Final = (
    "cluster", "job_id", "end", "user", "account", "partition", "printed_id", "array_job_id", "array_task_id", "name",
    "state", "gpu_type",
)  # fmt: skip


def findings_json(runs: Iterable[JudgedRun]) -> list[dict[str, Any]]:
    """Return the findings of runs, and of several together, the largest waste first."""
    runs = list(runs)
    found = [cause for run in runs for cause in run.causes]
    found += [finding.to_json() for finding in groups([run.small for run in runs if run.small is not None])]
    return named(sorted(found, key=finding_order), {(r.cluster, r.job_id): r.printed_id for r in runs})


def finding_order(finding: Mapping[str, Any]) -> tuple[float, str, list[tuple[str, int, int]]]:
    """Return what findings are sorted by: the largest waste first."""
    runs = [(run["cluster"], run["jobid"], run["start"]) for run in finding["runs"]]
    return -finding["wasted_gpu_s"], finding["kind"], runs


def named(findings: Iterable[dict[str, Any]], printed: Mapping[tuple[str, int], str]) -> list[dict[str, Any]]:
    """Return findings with the ids that Slurm prints beside the raw ones."""
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
