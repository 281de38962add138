"""Reads the last runs of such jobs and what each cluster offers, and the stored findings."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from gpuwaste.core.units import DAY_S, HOUR_S
from gpuwaste.ledger.judged_run import named
from gpuwaste.ledger.ledger import LedgerSettings
from gpuwaste.ledger.right_size.findings import size_findings
from gpuwaste.ledger.right_size.gpu_sizes import GpuSize, is_slice, size_of
from gpuwaste.ledger.right_size.rule import WINDOW
from gpuwaste.ledger.right_size.such_jobs import GpuWait, Site, SizedRun, SuchJobs, grouped, growths_of
from gpuwaste.ledger.run_judging import Selection
from gpuwaste.store.database import Database

DAYS: Final = 60
WAIT_DAYS: Final = 30
OF_JOBS: Final = 2 * WINDOW  # runs read of each name: the older half gives growths only
MOST_RUNS: Final = 200_000  # about 200 MB
_LONGEST_S: Final = 60 * DAY_S  # hours of a run that is older than this when it ends are not read
_WAIT: Final = ("jobs", "p50_s", "p90_s", "most_in", "partitions")


@dataclass(frozen=True, slots=True)
class SiteJobs:
    """Such jobs by cluster, and what each cluster offers."""

    jobs: Mapping[str, list[SuchJobs]]
    sites: Mapping[str, Site]

    def rows(self) -> list[dict[str, Any]]:
        """Return the findings as rows of table right_sizes."""
        return [
            {
                "cluster": cluster, "user": jobs.key[1],
                "account": jobs.newest.account, "partition": jobs.newest.partition,
                "name": jobs.key[2], "gpus": jobs.key[3], "gpu_type": jobs.key[4], "ended": jobs.runs[-1].ended,
                "kind": finding.kind, "finding": json.dumps(named([finding.to_json()], jobs.printed)[0]),
            }
            for cluster, theirs in self.jobs.items()
            for jobs in theirs
            for finding in size_findings(jobs, self.sites[cluster])
        ]  # fmt: skip


def read_jobs(db: Database, settings: LedgerSettings, now: int) -> SiteJobs:
    """Return such jobs of the last DAYS days. Raises StoreError."""
    since = now - DAYS * DAY_S
    which = {
        "from_s": since,
        "from_hour": since - _LONGEST_S - since % HOUR_S,
        "of_jobs": OF_JOBS,
        "most": MOST_RUNS,
        "min_ran_s": settings.run_min_s,
        "min_coverage": settings.min_coverage,
    }
    by_cluster: dict[str, list[SizedRun]] = {}
    for row in db.batches("right_size_runs", which):
        by_cluster.setdefault(row["cluster"], []).append(SizedRun.from_row(row))
    waits = _waits(db, now - WAIT_DAYS * DAY_S)
    jobs = {cluster: grouped(runs) for cluster, runs in by_cluster.items()}
    return SiteJobs(jobs, {name: _site(theirs, waits.get(name, {})) for name, theirs in jobs.items()})


def sized_findings(db: Database, selection: Selection) -> list[dict[str, Any]]:
    """Return the stored findings of such jobs whose newest run ended in the window, in the selection's scope."""
    asked = selection.parameters(selection.end)
    names = ("from_s", "to_s", "user", "account", "clusters", "accounts", "reader")
    return [json.loads(row["finding"]) for row in db.rows("right_sizes_of", {name: asked[name] for name in names})]


def _waits(db: Database, since: int) -> dict[str, dict[tuple[str, int], GpuWait]]:
    found: dict[str, dict[tuple[str, int], GpuWait]] = {}
    for row in db.rows("right_size_waits", {"from_s": since}):
        wait = GpuWait(**{name: row[name] for name in _WAIT})
        found.setdefault(row["cluster"], {})[row["gpu_type"], row["gpus"]] = wait
    return found


def _site(jobs: list[SuchJobs], waits: Mapping[tuple[str, int], GpuWait]) -> Site:
    names = {name for name, _ in waits} | {each.newest.gpu_type for each in jobs}
    return Site(site_sizes(names, _measured(jobs)), waits, growths_of(jobs))


def site_sizes(names: Iterable[str], measured: Mapping[str, int]) -> dict[str, GpuSize]:
    """Return the sizes of a cluster's gres types by name; `measured` is the memory that agents read, in bytes."""
    found: dict[str, GpuSize] = {}
    for name in sorted(names, key=lambda name: (is_slice(name), name)):  # a slice is of one of the full GPUs
        whole = {size.device.name: size.device for size in found.values()}
        size = size_of(name, measured.get(name), whole.values())
        if size is not None:
            found[name] = size
    return found


def _measured(jobs: Iterable[SuchJobs]) -> dict[str, int]:
    found: dict[str, int] = {}
    for each in jobs:
        for run in each.runs:
            if run.gpu_total_b:
                kind = run.job.gpu_type
                found[kind] = min(run.gpu_total_b, found.get(kind, run.gpu_total_b))
    return found
