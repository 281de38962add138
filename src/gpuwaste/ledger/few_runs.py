"""FewRuns: the answers of JudgedRuns (ledger/judged_runs.py) for few runs, computed from rows already read.

Planning a query over the wide rows of runs takes the store longer than running it, and a report has a dozen such
queries. One query reads a few thousand runs in less time; they are added up here by the same definitions.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from gpuwaste.core.units import DAY_S
from gpuwaste.ledger.findings.many_small_jobs import groups
from gpuwaste.ledger.judged_run import Group, JudgedRun, RunSums, finding_order, named
from gpuwaste.ledger.reports.report_question import EVERY_LINE, LineFilter
from gpuwaste.ledger.reports.rows import JobLine, job_lines
from gpuwaste.ledger.tally import ENERGY

FEW_RUNS: Final = 2000  # above this the store's own sums are faster
_TIMES: Final = ("alloc_ms", "idle_ms", "low_ms", "moderate_ms", "high_ms", "wasted_ms")


class FewRuns:
    """Complete runs, and the parts of them inside a window."""

    def __init__(self, runs: Sequence[JudgedRun], parts: Sequence[JudgedRun], window: Mapping[str, Any]) -> None:
        """Store runs, and the parts of those that an edge of the window cuts (query judged_window)."""
        now, from_s, to_s, cut = window["now"], window["from_s"], window["to_s"], window["cut"]
        whole = (
            run
            for run in runs
            if not cut or (run.key.start >= from_s and (now if run.end is None else run.end) <= to_s)
        )
        self._runs = runs
        self._cut = len(parts)
        self._parts = [*whole, *parts]
        self._last_s = to_s - 1
        self._now = now

    def sums(self) -> dict[Group, RunSums]:
        """Return the sums of each user, account, partition and cluster (judged_counts, judged_sums, judged_reasons)."""
        found: dict[Group, RunSums] = {}
        for run in self._runs:
            found.setdefault(_group(run), RunSums()).count(run)
        for part in self._parts:
            sums = found.setdefault(_group(part), RunSums())
            sums.own.add_tally(part.own)
            if part.shared is not None:
                sums.shared.add_tally(part.shared)
        return found

    def lines(
        self, limit: int | None, _runs: int, wanted: LineFilter = EVERY_LINE, offset: int = 0
    ) -> tuple[list[JobLine], int]:
        """Return the matching lines after the first `offset`, and how many there are (judged_lines)."""
        found = [line for line in job_lines(self._runs) if any(map(wanted.fits, line.tasks))]
        return found[offset:][:limit], len(found)

    def days(self) -> list[dict[str, Any]]:
        """Return the sums by the day on which runs ended (judged_days)."""
        found: dict[int, dict[str, Any]] = {}
        for part in self._parts:
            ended = min(self._now if part.end is None else part.end, self._now, self._last_s)
            day = ended - ended % DAY_S
            row = found.setdefault(day, {"day": day, **dict.fromkeys(ENERGY)})
            _add_times(row, part)
            row["pending_ms"] = row.get("pending_ms", 0) + part.own.pending_ms
            for name in ENERGY:
                if (amount := getattr(part.own, name)) is not None:
                    row[name] = (row[name] or 0) + amount
        return [found[day] for day in sorted(found)]

    def worst_name(self) -> dict[str, Any] | None:
        """Return the sums of the job name with the largest waste (judged_names)."""
        found: dict[str, dict[str, Any]] = {}
        for part in self._parts:
            _add_times(found.setdefault(part.name, {"name": part.name}), part)
        worst = min(found.values(), key=lambda row: (-row["wasted_ms"], -row["alloc_ms"], row["name"]), default=None)
        return worst and {name: worst[name] for name in ("name", "jobs", "alloc_ms", "wasted_ms")}

    def cut(self) -> int:
        """Return how many of the runs are partly outside the window."""
        return self._cut

    def findings(self, limit: int | None) -> tuple[list[dict[str, Any]], dict[str, dict[str, Any]]]:
        """Return the findings with the largest waste, and counts of all by kind (judged_findings, judged_causes)."""
        together = groups_of(self._runs)
        causes = [(cause, run) for run in self._runs for cause in run.causes]
        kinds: dict[str, list[float]] = {}
        for cause, _ in causes:
            kinds.setdefault(cause["kind"], []).append(cause["wasted_gpu_s"])
        counted = ((max(wasted), kind, len(wasted), sum(wasted)) for kind, wasted in kinds.items())
        found = [
            one
            for cause, run in sorted(causes, key=_largest)[:limit]
            for one in named([cause], {(run.key.cluster, run.key.job_id): run.printed_id})
        ]
        return sorted(together + found, key=finding_order)[:limit], finding_counts(counted, together)


def groups_of(runs: Iterable[JudgedRun]) -> list[dict[str, Any]]:
    """Return the findings that concern several runs together."""
    small = sorted((run for run in runs if run.small is not None), key=lambda run: (run.key.start, run.key.job_id))
    found = [finding.to_json() for finding in groups(run.small for run in small if run.small is not None)]
    return named(found, {(run.key.cluster, run.key.job_id): run.printed_id for run in small})


def finding_counts(
    kinds: Iterable[tuple[float, str, int, float]], together: Sequence[dict[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Return the counts of findings by kind; the kind with the largest finding is first.

    Each of `kinds` is the largest waste, the kind, the number of findings, and their total waste; `together` are
    findings of several runs.
    """
    rows = [(largest_s, kind, runs, runs, wasted_s) for largest_s, kind, runs, wasted_s in kinds]
    if together:
        wasted = [finding["wasted_gpu_s"] for finding in together]
        jobs = sum(len(finding["runs"]) for finding in together)
        rows.append((max(wasted), together[0]["kind"], len(together), jobs, sum(wasted)))
    return {
        kind: {"findings": findings, "jobs": jobs, "wasted_gpu_s": round(wasted_s, 3)}
        for _, kind, findings, jobs, wasted_s in sorted(rows, key=lambda row: (-row[0], row[1]))
    }


def with_sizes(
    findings: list[dict[str, Any]], counts: dict[str, dict[str, Any]], sized: list[dict[str, Any]], limit: int | None
) -> tuple[list[dict[str, Any]], dict[str, dict[str, Any]]]:
    """Return findings and counts with those about the size of requests, which are no waste, in addition."""
    more: dict[str, dict[str, Any]] = {}
    for finding in sized:
        count = more.setdefault(finding["kind"], {"findings": 0, "jobs": 0, "wasted_gpu_s": 0.0})
        count["findings"] += 1
        count["jobs"] += len(finding["runs"])
    return sorted(findings + sized, key=finding_order)[:limit], counts | more


def _largest(found: tuple[dict[str, Any], JudgedRun]) -> tuple[float, str, str, int, int]:
    cause, run = found
    return -cause["wasted_gpu_s"], cause["kind"], run.key.cluster, run.key.job_id, run.key.start


def _group(run: JudgedRun) -> Group:
    return run.user, run.account, run.partition, run.key.cluster


def _add_times(row: dict[str, Any], part: JudgedRun) -> None:
    row["jobs"] = row.get("jobs", 0) + 1
    for name in _TIMES:
        row[name] = row.get(name, 0) + getattr(part.own, name)
