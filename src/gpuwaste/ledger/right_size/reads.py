"""Reads the last runs of such jobs and what each cluster offers, and the stored findings."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

from gpuwaste.core.units import DAY_S, HOUR_S
from gpuwaste.ledger.judged_run import named
from gpuwaste.ledger.ledger import LedgerSettings
from gpuwaste.ledger.right_size.findings import size_findings
from gpuwaste.ledger.right_size.gpu_sizes import GpuSize, is_slice, size_of
from gpuwaste.ledger.right_size.rule import MIN_RUNS, WINDOW
from gpuwaste.ledger.right_size.such_jobs import GpuWait, SizedRun, SizedSite, SuchJobs, grouped, growths_of
from gpuwaste.ledger.run_judging import Selection
from gpuwaste.store.database import Database

DAYS: Final = 60
WAIT_DAYS: Final = 30
OF_JOBS: Final = 2 * WINDOW  # runs read of such jobs: some of the last may not have completed
RUNS_AT_ONCE: Final = 7_000
MOST_OF_USER: Final = 2 * RUNS_AT_ONCE
MOST_RUNS: Final = 400_000
GROWTH_RUNS: Final = 6_000
"""Runs of a cluster from which growths are drawn: many times the 99 that a chance of 1 % needs of each steadiness."""
_LONGEST_S: Final = 60 * DAY_S  # hours of a run that is older than this when it ends are not read
_ALL: Final = 10_000
_WAIT: Final = ("jobs", "p50_s", "p90_s", "most_in", "partitions")


@dataclass(frozen=True, slots=True)
class ClusterUsers:
    """The users of a cluster whose jobs are compared, in batches of RUNS_AT_ONCE runs."""

    cluster: str
    runs: int  # of all users, those of `batches` and others
    batches: Sequence[Sequence[str]]


class SizeReader:
    """Reads from a hub's store what the findings of one pass are drawn from, a batch of users at a time."""

    def __init__(self, db: Database, settings: LedgerSettings, now: int) -> None:
        self._db = db
        self._now = now
        self.since = now - DAYS * DAY_S
        self._ended = {"from_s": self.since, "min_ran_s": settings.run_min_s}
        hour = self.since - _LONGEST_S - self.since % HOUR_S
        self._which = self._ended | {
            "from_hour": hour, "of_jobs": OF_JOBS, "min_runs": MIN_RUNS, "min_coverage": settings.min_coverage,
        }  # fmt: skip

    def clusters(self, changed_s: int = 0) -> Iterator[ClusterUsers]:
        """Yield the users of whose jobs a run ended after `changed_s`, by cluster. Raises StoreError."""
        rows = self._db.rows("right_size_users", {**self._ended, "of_jobs": WINDOW, "most": MOST_RUNS})
        for cluster, theirs in groupby(rows, key=itemgetter("cluster")):
            users = list(theirs)
            changed = [(row["user"], row["runs"]) for row in users if row["newest"] > changed_s]
            yield ClusterUsers(cluster, sum(row["runs"] for row in users), list(_batches(changed)))

    def site(self, users: ClusterUsers) -> SizedSite:
        """Return what a cluster offers, and how such jobs of its users grew. Raises StoreError."""
        sample = max(1, round(_ALL * GROWTH_RUNS / max(1, OF_JOBS // WINDOW * users.runs)))
        grown = self._read(users.cluster, None, completed=OF_JOBS, sample=sample, most=2 * GROWTH_RUNS)
        since = {"cluster": users.cluster, "from_s": self._now - WAIT_DAYS * DAY_S}
        waits = {
            (row["gpu_type"], row["gpus"]): GpuWait(**{name: row[name] for name in _WAIT})
            for row in self._db.rows("right_size_waits", since)
        }
        measured = {row["gpu_type"]: row["memory_b"] for row in self._db.rows("right_size_memory", since)}
        names = {name for name, _ in waits} | measured.keys()
        return SizedSite(site_sizes(names, measured), waits, growths_of(grown))

    def jobs(self, cluster: str, users: Sequence[str]) -> list[SuchJobs]:
        """Return such jobs of some users. Raises StoreError."""
        return self._read(cluster, users, completed=WINDOW, sample=None, most=MOST_OF_USER)

    def _read(self, cluster: str, users: Sequence[str] | None, **bounds: int | None) -> list[SuchJobs]:
        which = {**self._which, "cluster": cluster, "users": None if users is None else list(users), **bounds}
        rows = self._db.answer("right_size_runs", which).pick(*SizedRun._fields)
        return grouped(map(SizedRun._make, rows))


def size_rows(such: Iterable[SuchJobs], site: SizedSite) -> list[dict[str, Any]]:
    """Return the findings as rows of table right_sizes."""
    return [
        {
            "cluster": jobs.key[0], "user": jobs.key[1],
            "account": jobs.newest.account, "partition": jobs.newest.partition,
            "name": jobs.key[2], "gpus": jobs.key[3], "gpu_type": jobs.key[4], "ended": jobs.runs[-1].ended,
            "kind": finding.kind, "finding": json.dumps(named([finding.to_json()], jobs.printed)[0]),
        }
        for jobs in such
        for finding in size_findings(jobs, site)
    ]  # fmt: skip


def _batches(users: Iterable[tuple[str, int]]) -> Iterator[list[str]]:
    batch: list[str] = []
    total = 0
    for user, runs in users:
        if batch and total + runs > RUNS_AT_ONCE:
            yield batch
            batch, total = [], 0
        batch.append(user)
        total += runs
    if batch:
        yield batch


def sized_findings(db: Database, selection: Selection) -> list[dict[str, Any]]:
    """Return the stored findings of such jobs whose newest run ended in the window, in the selection's scope."""
    asked = selection.parameters(selection.end)
    names = ("from_s", "to_s", "user", "account", "clusters", "accounts", "reader")
    return [json.loads(row["finding"]) for row in db.rows("right_sizes_of", {name: asked[name] for name in names})]


def site_sizes(names: Iterable[str], measured: Mapping[str, int]) -> dict[str, GpuSize]:
    """Return the sizes of a cluster's gres types by name; `measured` is the memory that agents read, in bytes."""
    found: dict[str, GpuSize] = {}
    for name in sorted(names, key=lambda name: (is_slice(name), name)):  # a slice is of one of the full GPUs
        whole = {size.device.name: size.device for size in found.values()}
        size = size_of(name, measured.get(name), whole.values())
        if size is not None:
            found[name] = size
    return found
