"""Builds the documents of the ledger: reports, jobs, and who is wasting now."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from typing import Final

from gpuwaste.core.scope import ClusterAccount
from gpuwaste.core.typed import convert
from gpuwaste.core.units import HOUR_S
from gpuwaste.jobs.run_store import pick_named
from gpuwaste.ledger.efficiency import cpu_efficiency
from gpuwaste.ledger.few_runs import FewRuns
from gpuwaste.ledger.job_hours import device_hours
from gpuwaste.ledger.judged import findings_json, judged_last
from gpuwaste.ledger.judged_runs import JudgedRuns, judged_runs, runs_judged_last, runs_of_users
from gpuwaste.ledger.ledger import DeviceLedger, JobLedger
from gpuwaste.ledger.ledger_settings import LedgerSettings
from gpuwaste.ledger.load import Selection, judge_job, judge_runs
from gpuwaste.ledger.open_runs import OpenRunSnapshot
from gpuwaste.ledger.reports.report_question import EVERY_LINE, LineFilter
from gpuwaste.ledger.reports.report_types import (
    DeviceRow,
    FindingCount,
    GpuTime,
    JobDocument,
    LevelSum,
    ReportDocument,
    RunRow,
    RunTime,
    Scope,
    Thresholds,
    TopDocument,
    UnderUsed,
)
from gpuwaste.ledger.reports.rows import (
    account_rows,
    cluster_rows,
    day_rows,
    finding_rows,
    job_row,
    name_row,
    user_rows,
)
from gpuwaste.ledger.run_sums import RunSums
from gpuwaste.ledger.tally import Tally, seconds
from gpuwaste.slurm.accounting.job import JobRecord
from gpuwaste.slurm.run import RunKey
from gpuwaste.store.database import Database

_OF_JOB: Final = [part.name for part in fields(JobRecord) if part.name in RunRow.__struct_fields__]
_OF_USE: Final = (
    "share",
    "mem_max_b",
    "mem_total_b",
    "power_w_at_full",
    "sm_ratio_at_full",
    "sm_active",
    "tensor_active",
    "dram_active",
    "nvlink_b",
    "pcie_b",
    "map_source",
    "confidence",
)


Tallies = Mapping[tuple[str, ClusterAccount], Tally]
"""Sums of own GPUs by user and account of a cluster."""


@dataclass(frozen=True, slots=True)
class Clusters:
    """The clusters that a report is asked for, with a row for each; no names: all."""

    names: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class ReportLines:
    """How many of the largest lines and findings a report has, and which lines of the job table.

    `clusters` have a row each, as others with runs have; None: there are no such rows.
    """

    limit: int | None = None
    offset: int = 0
    lines: LineFilter = EVERY_LINE
    clusters: Collection[str] | None = None


def report_document(  # noqa: PLR0917 the order in which a question is asked; the hub calls it so
    db: Database,
    scope: Scope,
    name: str,
    start: int,
    end: int,
    settings: LedgerSettings,
    now: int,
    *,
    accounts: Collection[ClusterAccount] | None = None,
    clusters: Clusters | None = None,
    limit: int | None = None,
    offset: int = 0,
    lines: LineFilter = EVERY_LINE,
    kept: OpenRunSnapshot | None = None,
) -> ReportDocument:
    """Report on a user, an account or a cluster (`name` empty: every cluster) over [start, end), UTC seconds.

    `accounts` keeps to runs of these accounts, for a reader who may see no others, and `clusters` to those of some
    clusters, with a row for each; `limit` keeps the job table and the
    findings to that many of the largest waste; `lines` and `offset` pick lines of the job table alone. With `kept` the
    report is as of that instant, and `now` and the end are not after it.
    """
    asked = ReportLines(limit, offset, lines, None if clusters is None else clusters.names or ())
    with judged_runs(db, _selected(scope, name, start, end, accounts, clusters), settings, now, kept=kept) as runs:
        return _document(runs, (scope, name, start, end), settings, now, asked=asked, recorded=is_recorded(db))


def user_reports(
    db: Database,
    users: Collection[str],
    window: tuple[int, int],
    settings: LedgerSettings,
    kept: OpenRunSnapshot,
    *,
    asked: ReportLines,
) -> dict[str, ReportDocument]:
    """Return what `report_document` does for each of some users; those with many runs are left out.

    Raises OutdatedError.
    """
    recorded = is_recorded(db)
    return {
        user: _document(runs, ("user", user, *window), settings, kept.now, asked=asked, recorded=recorded)
        for user, runs in runs_of_users(db, users, window, settings, kept).items()
    }


def _document(
    runs: JudgedRuns | FewRuns,
    subject: tuple[Scope, str, int, int],
    settings: LedgerSettings,
    now: int,
    *,
    asked: ReportLines,
    recorded: bool,
) -> ReportDocument:
    scope, name, start, end = subject
    sums = runs.sums()
    total = RunSums.of(sums.values())
    rows, matching = runs.lines(asked.limit, total.jobs, asked.lines, asked.offset)
    findings, finding_counts = runs.findings(asked.limit)
    cut = runs.cut()
    days, worst = runs.days(), runs.worst_name()
    return ReportDocument(
        recorded=recorded,
        generated=now,
        scope=scope,
        name=name,
        start=start,
        end=end,
        totals=GpuTime(**total.own.to_json()),
        shared=GpuTime(**total.shared.to_json()),
        levels={level: LevelSum(**row) for level, row in total.levels_json().items()},
        under_used=UnderUsed(**total.under_used_json()),
        job_count=total.jobs,
        clusters=[] if asked.clusters is None else cluster_rows(sums, asked.clusters),
        accounts=[] if scope == "account" else account_rows(sums),
        users=user_rows(sums),
        jobs=[job_row(line) for line in rows],
        jobs_left_out=matching - len(rows),
        jobs_matching=matching,
        days=day_rows(days),
        worst_name=name_row(worst),
        findings=finding_rows(findings),
        finding_counts={kind: FindingCount(**count) for kind, count in finding_counts.items()},
        notes=_notes(total, cut),
        thresholds=_thresholds(settings),
    )


def report_totals(  # noqa: PLR0917 as report_document
    db: Database,
    scope: Scope,
    name: str,
    start: int,
    end: int,
    settings: LedgerSettings,
    now: int,
    *,
    accounts: Collection[ClusterAccount] | None = None,
    clusters: Clusters | None = None,
    kept: OpenRunSnapshot | None = None,
) -> GpuTime:
    """Return the totals alone that `report_document` has."""
    with judged_runs(db, _selected(scope, name, start, end, accounts, clusters), settings, now, kept=kept) as runs:
        return GpuTime(**RunSums.of(runs.sums().values()).own.to_json())


def totals_by_account(db: Database, start: int, end: int, settings: LedgerSettings, kept: OpenRunSnapshot) -> Tallies:
    """Return the sums behind `report_totals` of each user and account of a cluster. Raises OutdatedError."""
    found: dict[tuple[str, ClusterAccount], Tally] = {}
    with judged_runs(db, Selection(start, end), settings, kept.now, kept=kept) as runs:
        for (user, account, _, cluster), sums in runs.sums().items():
            found.setdefault((user, ClusterAccount(cluster, account)), Tally()).add_tally(sums.own)
    return found


def _selected(  # noqa: PLR0917 as report_document
    scope: Scope,
    name: str,
    start: int,
    end: int,
    accounts: Collection[ClusterAccount] | None,
    clusters: Clusters | None,
) -> Selection:
    names = None if clusters is None else clusters.names
    where: dict[Scope, Selection] = {
        "user": Selection(start, end, user=name, accounts=accounts, clusters=names),
        "account": Selection(start, end, account=name, accounts=accounts, clusters=names),
        "cluster": Selection(start, end, accounts=accounts, clusters=(name,) if name and clusters is None else names),
    }
    return where[scope]


def job_document(
    db: Database,
    printed_id: str,
    settings: LedgerSettings,
    now: int,
    *,
    accounts: Collection[ClusterAccount] | None = None,
    reader: str | None = None,
    hours: bool = False,
) -> JobDocument | None:
    """Report on the runs of one job (7, 3_1, 4+1) in scope; None where there is none.

    `accounts` keeps to runs of these accounts and, where `reader` is given, to that user's own. With `hours` it has
    what each GPU did over time.
    """
    pick_named(db, printed_id, accounts=accounts, reader=reader)
    return picked_job_document(db, printed_id, settings, now, hours=hours)


def picked_job_document(
    db: Database,
    printed_id: str,
    settings: LedgerSettings,
    now: int,
    *,
    keys: Collection[RunKey] | None = None,
    hours: bool = False,
) -> JobDocument | None:
    """Report on the runs that `pick_named` picked last on this connection, or of them on those of `keys`."""
    jobs = judge_job(db, settings, now)
    if keys is not None:
        jobs = [j for j in jobs if j.job.run_key in keys]
    if not jobs:
        return None
    runs = [run for run in judged_last(db) if keys is None or run.key in keys]
    total = RunSums(
        running=sum(run.running for run in runs),
        beyond=sum(run.beyond > 0 for run in runs),
        conflicts=sum(run.conflict for run in runs),
    )
    return JobDocument(
        recorded=is_recorded(db),
        generated=now,
        printed_id=printed_id,
        runs=[_run_row(j) for j in jobs],
        findings=finding_rows(findings_json(runs)),
        notes=_notes(total),
        thresholds=_thresholds(settings),
        hours=device_hours(db, [j.job for j in jobs], now) if hours else [],
    )


def top_document(
    db: Database,
    since: int,
    settings: LedgerSettings,
    now: int,
    *,
    accounts: Collection[ClusterAccount] | None = None,
    reader: str | None = None,
    limit: int | None = None,
) -> TopDocument:
    """Report on what running jobs wasted since the UTC hour of `since`, the largest waste first.

    `accounts` keeps to runs of these accounts and, where `reader` is given, to that user's own.
    """
    since -= since % HOUR_S
    selection = Selection(since, now + 1, accounts=accounts, reader=reader, running_only=True)
    some = judge_runs(db, selection, settings, now, from_hour=since)
    with runs_judged_last(db, some=some) as runs:
        sums = runs.sums()
        total = RunSums.of(sums.values())
        lines, _ = runs.lines(limit, total.jobs)
    return TopDocument(
        recorded=is_recorded(db),
        generated=now,
        since=since,
        totals=GpuTime(**total.own.to_json()),
        users=user_rows(sums)[:limit],
        jobs=[job_row(line) for line in lines],
        notes=_notes(total),
    )


def _notes(sums: RunSums, cut: int = 0) -> list[str]:
    """Return what a reader must know of some of the runs, of which the window cuts some."""
    said = (
        (sums.running, "still running: their figures are provisional"),
        (sums.beyond, "reported on more GPUs than accounting has for them: the additional ones are not counted"),
        (cut, "partly outside the requested time: totals contain the part inside, job lines the full run"),
        (sums.conflicts, "with GPUs about which the sources of the device map disagree: their time is unknown"),
    )
    return [f"{'1 job' if count == 1 else f'{count} jobs'} {words}" for count, words in said if count]


def _run_row(ledger: JobLedger) -> RunRow:
    """Return one run: accounting's facts, its sums, its devices."""
    job = ledger.job
    memory = ledger.memory_ratio
    started = job.start is not None
    return RunRow(
        **{name: getattr(job, name) for name in _OF_JOB},
        whole_node=ledger.whole_node,
        running=ledger.running and started,
        suspended_job_s=job.suspended_s,
        gpus_beyond=ledger.beyond,
        cpu_efficiency=cpu_efficiency(ledger) if started else None,
        memory_efficiency=round(memory, 4) if started and memory is not None else None,
        totals=convert(Tally.of(ledger.devices).to_json() if started else {}, RunTime),
        devices=[_device_row(d, ledger) for d in ledger.devices] if started else [],
        shared=[_device_row(d, ledger) for d in ledger.shared] if started else [],
    )


def _device_row(device: DeviceLedger, ledger: JobLedger) -> DeviceRow:
    """Return one GPU of a run; node and uuid are None for a GPU that no agent reported."""
    use = device.use
    seen = bool(use.gpu_uuid)
    return DeviceRow(
        **{name: getattr(use, name) for name in _OF_USE},
        node=use.node or None,
        gpu_uuid=use.gpu_uuid or None,
        t0=seconds(use.t0_ms) if seen else None,
        t1=seconds(use.t1_ms) if seen else None,
        level=str(device.level),
        untouched=device.untouched,
        provisional=ledger.running,
        final=use.final if seen else None,
        under_used=device.under_used,
        proc_seen=use.proc_seen if seen else None,
        last_active=None if use.last_active_ms is None else seconds(use.last_active_ms),
        profiled_s=None if use.profiled_ms is None else seconds(use.profiled_ms),
        over_s=seconds(device.over_ms),
        **Tally.of([device]).to_json(),
    )


def _thresholds(settings: LedgerSettings) -> Thresholds:
    return convert(settings, Thresholds, from_attributes=True)


def is_recorded(db: Database) -> bool:
    """Tell whether the store holds a recording: mark `recorded` is not 0."""
    return any(row["value"] for row in db.rows("report_mark", {"key": "recorded"}))
