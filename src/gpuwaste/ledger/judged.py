"""JudgedRun: what the ledger says of one run, as a row: kept once for a settled run, made anew for an open one."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, Self

from gpuwaste.ledger.findings.many_small_jobs import SmallRun, groups
from gpuwaste.ledger.tally import Tally
from gpuwaste.slurm.run import RunKey
from gpuwaste.store.database import Database


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
    def from_row(cls, row: Mapping[str, Any]) -> Self:
        """Return the run of a row of table judged."""
        values = {name: row[name] for name in _FIELDS}
        small, shared = row["small"], row["shared"]
        values |= {"own": Tally.of_own(row), "shared": None if shared is None else Tally(**shared)}
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


_FIELDS: Final = tuple(f.name for f in fields(JudgedRun))


def judged_last(db: Database) -> list[JudgedRun]:
    """Return the runs that were judged last on a connection (ledger/load.py), in their order."""
    return [JudgedRun.from_row(row) for row in db.rows("ledger_judged", {"rules": None})]


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
