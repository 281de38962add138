"""Rows of documents from the ledger's sums: lines of the job table, users, findings."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from gpuwaste.core.typed import convert
from gpuwaste.ledger.judged_run import Group, JudgedRun, RunSums
from gpuwaste.ledger.ledger import Level
from gpuwaste.ledger.reports.report_types import (
    AccountRow,
    ClusterRow,
    DayRow,
    FindingRow,
    JobRow,
    NameRow,
    UnderUsed,
    UserRow,
)
from gpuwaste.ledger.tally import ENERGY, Tally, seconds

_NO_CAUSE: Final = {"kind": "", "title": ""}


@dataclass(frozen=True, slots=True)
class JobLine:
    """The content of one row of the job table: a run, or the tasks of an array."""

    tasks: list[JudgedRun]
    printed_id: str
    requeued: bool


def job_row(line: JobLine) -> JobRow:
    """Return one row of the job table."""
    tasks = line.tasks
    first = tasks[0]
    states = Counter(t.state for t in tasks)
    ends = [t.end for t in tasks]
    memory = [t.memory_ratio for t in tasks if t.memory_ratio is not None]
    levels = [sum(devices) for devices in zip(*(t.level_devices for t in tasks), strict=True)]
    cause = max((c for t in tasks for c in t.causes), key=lambda c: float(c["wasted_gpu_s"]), default=_NO_CAUSE)
    return JobRow(
        cluster=first.key.cluster,
        printed_id=line.printed_id,
        name=first.name,
        user=first.user,
        account=first.account,
        partition=first.partition,
        state=first.state if len(states) == 1 else "MIXED",
        states=dict(sorted(states.items())),
        tasks=len(tasks),
        requeued=line.requeued,
        running=any(t.running for t in tasks),
        start=min(t.key.start for t in tasks),
        end=None if None in ends else max(e for e in ends if e is not None),
        gpus=sum(t.gpus for t in tasks),
        gpu_type=first.gpu_type,
        under_used_devices=sum(t.under_devices for t in tasks),
        shared_gpu_s=seconds(sum(t.shared.alloc_ms for t in tasks if t.shared is not None)),
        cpu_efficiency=ratio(sum(t.cpu_used_s or 0.0 for t in tasks), sum(t.cpu_held_s or 0.0 for t in tasks)),
        memory_efficiency=round(max(memory), 4) if memory else None,
        devices_by_level={str(level): devices for level, devices in zip(Level, levels, strict=True) if devices},
        finding=cause["kind"],
        why=cause["title"],
        **Tally.sum(t.own for t in tasks).to_json(),
    )


def day_rows(found: Iterable[Mapping[str, Any]]) -> list[DayRow]:
    """Return the sums by day from rows of query judged_days."""
    rows = []
    for row in found:
        times = {name: value for name, value in row.items() if name not in ENERGY}
        energy = Tally(**{name: row[name] for name in ENERGY}).energy_json()
        amounts: dict[str, Any] = {**_times(times), **energy}
        rows.append(DayRow(day=row["day"], jobs=row["jobs"], **amounts))
    return rows


def name_row(row: Mapping[str, Any] | None) -> NameRow | None:
    """Return the sums of one job name from a row of query judged_names; None where it wasted nothing."""
    return NameRow(name=row["name"], jobs=row["jobs"], **_times(row)) if row and row["wasted_ms"] else None


def _times(row: Mapping[str, Any]) -> dict[str, float]:
    named = {name.removesuffix("_ms"): value for name, value in row.items() if name.endswith("_ms")}
    return {f"{'gpu' if name == 'alloc' else name}_s": seconds(ms) for name, ms in named.items()}


def user_rows(sums: Mapping[Group, RunSums]) -> list[UserRow]:
    """Return the sums of each user, the largest waste first."""
    groups: dict[str, list[Group]] = {}
    for group in sums:
        groups.setdefault(group[0], []).append(group)
    rows: list[UserRow] = []
    for user, theirs in groups.items():
        total = RunSums.of(sums[group] for group in theirs)
        rows.append(
            UserRow(
                user=user,
                accounts=sorted({account for _, account, _, _ in theirs}),
                jobs=total.jobs,
                running=total.running,
                under_used=UnderUsed(**total.under_used_json()),
                **total.own.to_json(),
            )
        )
    return sorted(rows, key=lambda row: (-row.wasted_s, -row.gpu_s, row.user))


def cluster_rows(sums: Mapping[Group, RunSums], named: Collection[str]) -> list[ClusterRow]:
    """Return the sums of each cluster by name: those with runs, and `named` ones without any."""
    of: dict[str, list[RunSums]] = {cluster: [] for cluster in named}
    for (_, _, _, cluster), found in sums.items():
        of.setdefault(cluster, []).append(found)
    totals = {cluster: RunSums.of(found) for cluster, found in sorted(of.items())}
    return [
        ClusterRow(cluster=cluster, jobs=total.jobs, running=total.running, **total.own.to_json())
        for cluster, total in totals.items()
    ]


def account_rows(sums: Mapping[Group, RunSums]) -> list[AccountRow]:
    """Return the sums of each account, the largest waste first."""
    groups: dict[str, list[Group]] = {}
    for group in sums:
        groups.setdefault(group[1], []).append(group)
    rows: list[AccountRow] = []
    for account, theirs in groups.items():
        total, users = RunSums.of(sums[group] for group in theirs), len({user for user, _, _, _ in theirs})
        amounts = total.own.to_json()
        rows.append(AccountRow(account=account, users=users, jobs=total.jobs, running=total.running, **amounts))
    return sorted(rows, key=lambda row: (-row.wasted_s, -row.gpu_s, row.account))


def finding_rows(found: Iterable[object]) -> list[FindingRow]:
    """Return the ledger's findings as typed rows."""
    return convert(found, list[FindingRow])


def ratio(used_s: float | None, held_s: float | None) -> float | None:
    """Return CPU time used over CPU time allocated, 0..1 and more, for documents; None if unknown."""
    return round((used_s or 0.0) / held_s, 4) if held_s else None


def job_lines(runs: Iterable[JudgedRun], newest: Mapping[tuple[str, int], int] | None = None) -> list[JobLine]:
    """Return a line for each run, array tasks rolled up, the largest waste first.

    A requeued run has a separate line: it is another run of the same job. `newest` is when the newest run of each job
    began, if `runs` are not all. Query judged_lines returns the same lines.
    """
    ordered = sorted(runs, key=lambda r: r.key.start)
    last = {(run.key.cluster, run.key.job_id): run.key.start for run in ordered} if newest is None else newest
    lines = []
    arrays: dict[tuple[str, int], list[JudgedRun]] = {}
    for run in ordered:
        requeued = last[run.key.cluster, run.key.job_id] != run.key.start or run.state == "REQUEUED"
        if run.array_job_id is not None and not requeued:
            arrays.setdefault((run.key.cluster, run.array_job_id), []).append(run)
        else:
            lines.append(JobLine([run], run.printed_id, requeued))
    for (_, array_id), tasks in arrays.items():
        ids = [t.array_task_id or 0 for t in tasks]
        printed = tasks[0].printed_id if len(tasks) == 1 else f"{array_id}_[{min(ids)}-{max(ids)}]"
        lines.append(JobLine(tasks, printed, requeued=False))
    return sorted(lines, key=_order)


def _order(line: JobLine) -> tuple[int, int, str, str]:
    """Return the sort key of lines: the largest waste first."""
    wasted, held = sum(t.own.wasted_ms for t in line.tasks), sum(t.own.alloc_ms for t in line.tasks)
    return -wasted, -held, line.tasks[0].key.cluster, line.printed_id


def by_user(runs: Iterable[JudgedRun]) -> dict[str, list[JudgedRun]]:
    """Return the runs of each user, in the given order."""
    of_user: dict[str, list[JudgedRun]] = {}
    for run in runs:
        of_user.setdefault(run.user, []).append(run)
    return of_user
