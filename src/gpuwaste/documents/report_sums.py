"""ReportSums: what a report says, taken in group by group of users: a large site's month needs little memory."""

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Self

from gpuwaste.core.finding import Finding
from gpuwaste.waste.findings import all_findings, finding_order
from gpuwaste.waste.ledger import JobLedger
from gpuwaste.waste.rows import findings_json, job_lines, job_row, line_order, user_order, user_rows
from gpuwaste.waste.settings import LedgerSettings
from gpuwaste.waste.tally import Tally, levels_json, under_used_json

_Row = tuple[Any, dict[str, Any]]
"""What a row is sorted by, and the row."""


class ReportSums:
    """Sums over groups of whole users; `limit` keeps runs and findings to that many of the largest waste."""

    def __init__(self, settings: LedgerSettings, limit: int | None = None) -> None:
        self._settings = settings
        self._limit = limit
        self._users: list[dict[str, Any]] = []
        self._jobs: list[_Row] = []
        self._findings: list[_Row] = []
        self.totals = Tally()
        self.shared = Tally()
        self.levels = levels_json(())
        self.under_used = under_used_json(())
        self.job_count = 0
        self.jobs_left_out = 0
        self.finding_counts: dict[str, dict[str, Any]] = {}
        self.notes = Notes()

    def add(self, jobs: Sequence[JobLedger]) -> None:
        """Take in all runs of some users, none of whom was taken in before."""
        for ledger in jobs:
            for device in ledger.devices:
                self.totals.add(device)
            for device in ledger.shared:
                self.shared.add(device)
        rows = user_rows(jobs)
        for row in rows:
            self.under_used = added(self.under_used, row["under_used"])
        self._users += rows
        self.levels = added(self.levels, levels_json(jobs))
        self.job_count += len(jobs)
        self.notes = Notes.of(jobs, self.notes)
        lines = job_lines(jobs)
        self._jobs, left_out = self._kept(
            self._jobs, [(line_order(line), job_row(line)) for line in lines[: self._limit]]
        )
        self.jobs_left_out += left_out + len(lines) - len(lines[: self._limit])
        findings = all_findings(jobs, self._settings)
        self.finding_counts = added(self.finding_counts, _finding_counts(findings))
        named = findings[: self._limit]
        documents = findings_json(named, jobs)
        self._findings, _ = self._kept(self._findings, list(zip(map(finding_order, named), documents, strict=True)))

    def user_rows(self) -> list[dict[str, Any]]:
        """Return the sums of each user, the largest waste first."""
        return sorted(self._users, key=user_order)

    def job_rows(self) -> list[dict[str, Any]]:
        """Return the job table, the largest waste first."""
        return [row for _, row in sorted(self._jobs, key=itemgetter(0))]

    def findings(self) -> list[dict[str, Any]]:
        """Return the findings, the largest waste first."""
        return [row for _, row in sorted(self._findings, key=itemgetter(0))]

    def _kept(self, rows: list[_Row], more: list[_Row]) -> tuple[list[_Row], int]:
        """Return the rows that stay within the limit, and how many do not."""
        both = rows + more
        if self._limit is None or len(both) <= self._limit:
            return both, 0
        return heapq.nsmallest(self._limit, both, key=itemgetter(0)), len(both) - self._limit


@dataclass(frozen=True, slots=True)
class Notes:
    """How many runs there are of which a reader must know something."""

    running: int = 0
    beyond: int = 0
    conflicts: int = 0

    @classmethod
    def of(cls, jobs: Iterable[JobLedger], before: Self | None = None) -> Self:
        """Count runs, beside those of `before`."""
        running, beyond, conflicts = (0, 0, 0) if before is None else (before.running, before.beyond, before.conflicts)
        for ledger in jobs:
            running += ledger.running
            beyond += ledger.beyond > 0
            conflicts += any(d.use.confidence == "conflict" for d in ledger.devices)
        return cls(running, beyond, conflicts)

    def words(self) -> list[str]:
        """Return the notes."""
        notes = []
        if self.running:
            notes.append(f"{_jobs(self.running)} still running: what is said of them is provisional")
        if self.beyond:
            notes.append(
                f"{_jobs(self.beyond)} reported on more GPUs than accounting gave them: the others do not count"
            )
        if self.conflicts:
            notes.append(f"{_jobs(self.conflicts)} with GPUs on which the sources of the device map disagree: unknown")
        return notes


def added(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Return the sum of two objects of numbers, member by member; seconds stay whole milliseconds."""
    return {key: _sum(one.get(key), other.get(key)) for key in {**one, **other}}


def _sum(one: Any, other: Any) -> Any:
    if isinstance(one, dict) or isinstance(other, dict):
        return added(one or {}, other or {})
    total = (one or 0) + (other or 0)
    return round(total, 3) if isinstance(total, float) else total


def _finding_counts(findings: Sequence[Finding]) -> dict[str, dict[str, Any]]:
    counts: dict[str, dict[str, Any]] = {}
    for finding in findings:
        entry = counts.setdefault(finding.kind, {"findings": 0, "jobs": 0, "wasted_gpu_s": 0.0})
        entry["findings"] += 1
        entry["jobs"] += len(finding.runs)
        entry["wasted_gpu_s"] += finding.wasted_gpu_s
    return counts


def _jobs(count: int) -> str:
    return "1 job" if count == 1 else f"{count} jobs"
