"""The documents that the hub serves and `report/` renders: reports, jobs, and who is wasting now.

Times are UTC seconds, durations seconds, ratios 0..1, utilization percent; None is "not known", never 0. `schema`
counts changes that a renderer must know of.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from gpuwaste.core.hour import HOUR_S
from gpuwaste.core.run import RunKey
from gpuwaste.store.database import Database
from gpuwaste.waste.efficiency import cpu_efficiency, memory_ratio
from gpuwaste.waste.judged import JudgedRun, findings_json
from gpuwaste.waste.judged_runs import Group, RunSums, judged_runs, these_runs
from gpuwaste.waste.ledger import DeviceLedger, JobLedger
from gpuwaste.waste.load import Selection, load_job, load_jobs
from gpuwaste.waste.rows import job_row
from gpuwaste.waste.settings import LedgerSettings
from gpuwaste.waste.tally import Tally, seconds

SCHEMA: Final = 1
Scope = Literal["user", "account", "cluster"]


@dataclass(frozen=True, slots=True)
class ReportDocument:
    """What a scope's runs in a window did with their GPUs.

    GPU-time of the totals and of users is cut at the window's edges; jobs, devices and findings are of whole runs.
    """

    recorded: bool
    generated: int
    scope: Scope
    name: str
    start: int
    end: int
    totals: dict[str, Any]
    shared: dict[str, Any]
    levels: dict[str, Any]
    under_used: dict[str, Any]
    job_count: int
    users: list[dict[str, Any]]
    jobs: list[dict[str, Any]]
    jobs_left_out: int
    findings: list[dict[str, Any]]
    finding_counts: dict[str, dict[str, Any]]
    notes: list[str]
    thresholds: dict[str, float]

    def to_json(self) -> dict[str, Any]:
        """Return the document as a JSON object."""
        return _envelope("report", self)


@dataclass(frozen=True, slots=True)
class JobDocument:
    """Every run of one job, array or het job, with its devices and findings."""

    recorded: bool
    generated: int
    job_id: str
    runs: list[dict[str, Any]]
    findings: list[dict[str, Any]]
    notes: list[str]
    thresholds: dict[str, float]

    def to_json(self) -> dict[str, Any]:
        """Return the document as a JSON object."""
        return _envelope("job", self)


@dataclass(frozen=True, slots=True)
class TopDocument:
    """Who wastes GPUs now: running jobs since a whole UTC hour."""

    recorded: bool
    generated: int
    since: int
    totals: dict[str, Any]
    users: list[dict[str, Any]]
    jobs: list[dict[str, Any]]
    notes: list[str]

    def to_json(self) -> dict[str, Any]:
        """Return the document as a JSON object."""
        return _envelope("top", self)


def report_document(  # noqa: PLR0917 the order in which a question is asked; the hub calls it so
    db: Database,
    scope: Scope,
    name: str,
    start: int,
    end: int,
    settings: LedgerSettings,
    now: int,
    *,
    accounts: Collection[str] | None = None,
    limit: int | None = None,
) -> ReportDocument:
    """Report on a user, an account or a cluster (`name` empty: every cluster) over [start, end), UTC seconds.

    `accounts` keeps to runs of these accounts, for a reader who may see no others; `limit` keeps the job table and the
    findings to that many of the largest waste.
    """
    where: dict[Scope, Selection] = {
        "user": Selection(start, end, user=name, accounts=accounts),
        "account": Selection(start, end, account=name, accounts=accounts),
        "cluster": Selection(start, end, cluster=name or None, accounts=accounts),
    }
    with judged_runs(db, where[scope], settings, now) as runs:
        sums = runs.sums()
        total = RunSums.of(sums.values())
        lines, left_out = runs.lines(limit, total.jobs)
        findings, finding_counts = runs.findings(limit)
        cut = runs.cut()
    return ReportDocument(
        recorded=_recorded(db),
        generated=now,
        scope=scope,
        name=name,
        start=start,
        end=end,
        totals=total.own.to_json(),
        shared=total.shared.to_json(),
        levels=total.levels_json(),
        under_used=total.under_used_json(),
        job_count=total.jobs,
        users=_user_rows(sums),
        jobs=[job_row(line) for line in lines],
        jobs_left_out=left_out,
        findings=findings,
        finding_counts=finding_counts,
        notes=_notes(total, cut),
        thresholds=_thresholds(settings),
    )


def job_document(
    db: Database,
    printed_id: str,
    settings: LedgerSettings,
    now: int,
    *,
    accounts: Collection[str] | None = None,
    reader: str | None = None,
    keys: Collection[RunKey] | None = None,
) -> JobDocument | None:
    """Report on the runs of one job (7, 3_1, 4+1) in scope; None where there is none.

    `accounts` keeps to runs of these accounts and, where `reader` is given, to that user's own; `keys` to these runs.
    """
    jobs = load_job(db, printed_id, settings, now, accounts=accounts, reader=reader)
    if keys is not None:
        jobs = [j for j in jobs if j.job.run_key in keys]
    if not jobs:
        return None
    runs = [JudgedRun.of(j, settings) for j in jobs if j.job.start is not None]
    with these_runs(db, runs) as started:
        total = RunSums.of(started.sums().values())
    return JobDocument(
        recorded=_recorded(db),
        generated=now,
        job_id=printed_id,
        runs=[_run_json(j) for j in jobs],
        findings=findings_json(runs),
        notes=_notes(total),
        thresholds=_thresholds(settings),
    )


def top_document(
    db: Database,
    since: int,
    settings: LedgerSettings,
    now: int,
    *,
    accounts: Collection[str] | None = None,
    reader: str | None = None,
    limit: int | None = None,
) -> TopDocument:
    """Report on what running jobs wasted since the UTC hour of `since`, the largest waste first.

    `accounts` keeps to runs of these accounts and, where `reader` is given, to that user's own.
    """
    since -= since % HOUR_S
    selection = Selection(since, now + 1, accounts=accounts, reader=reader, running_only=True)
    jobs = load_jobs(db, selection, settings, now, from_hour=since)
    with these_runs(db, (JudgedRun.of(job, settings) for job in jobs)) as runs:
        sums = runs.sums()
        total = RunSums.of(sums.values())
        lines, _ = runs.lines(limit, total.jobs)
    return TopDocument(
        recorded=_recorded(db),
        generated=now,
        since=since,
        totals=total.own.to_json(),
        users=_user_rows(sums)[:limit],
        jobs=[job_row(line) for line in lines],
        notes=_notes(total),
    )


def _user_rows(sums: Mapping[Group, RunSums]) -> list[dict[str, Any]]:
    """Return the sums of each user, the largest waste first."""
    groups: dict[str, list[Group]] = {}
    for group in sums:
        groups.setdefault(group[0], []).append(group)
    rows: list[dict[str, Any]] = []
    for user, theirs in groups.items():
        total = RunSums.of(sums[group] for group in theirs)
        rows.append(
            {
                "user": user,
                "accounts": sorted({account for _, account, _ in theirs}),
                "jobs": total.jobs,
                "running": total.running,
                "under_used": total.under_used_json(),
                **total.own.to_json(),
            }
        )
    return sorted(rows, key=lambda row: (-row["wasted_s"], -row["gpu_s"], row["user"]))


def _notes(sums: RunSums, cut: int = 0) -> list[str]:
    """Return what a reader must know of some of the runs, of which the window cuts some."""
    said = (
        (sums.running, "still running: their figures are provisional"),
        (sums.beyond, "reported on more GPUs than accounting has for them: the additional ones are not counted"),
        (cut, "partly outside the requested time: totals contain the part inside, job lines the full run"),
        (sums.conflicts, "with GPUs about which the sources of the device map disagree: their time is unknown"),
    )
    return [f"{'1 job' if count == 1 else f'{count} jobs'} {words}" for count, words in said if count]


def _envelope(kind: str, document: Any) -> dict[str, Any]:
    return {"document": kind, "schema": SCHEMA, **{name: getattr(document, name) for name in document.__slots__}}


def _run_json(ledger: JobLedger) -> dict[str, Any]:
    """Return one run: accounting's facts, its sums, its devices."""
    job = ledger.job
    own = {} if job.start is None else Tally.of(ledger.devices).to_json()
    memory = memory_ratio(ledger)
    return {
        "cluster": job.cluster,
        "jobid": job.printed_id,
        "raw_id": job.job_id,
        "name": job.name,
        "user": job.user,
        "account": job.account,
        "partition": job.partition,
        "qos": job.qos,
        "whole_node": ledger.whole_node,
        "state": job.state,
        "running": ledger.running and job.start is not None,
        "restarts": job.restarts,
        "interactive": job.interactive,
        "submit": job.submit,
        "start": job.start,
        "end": job.end,
        "elapsed_s": job.elapsed_s,
        "suspended_job_s": job.suspended_s,
        "time_limit_s": job.time_limit_s,
        "nodes": job.nodes,
        "cpus": job.cpus,
        "gpus": job.gpus,
        "gpus_beyond": ledger.beyond,
        "gpu_type": job.gpu_type,
        "exit_code": job.exit_code,
        "exit_signal": job.exit_signal,
        "cpu_efficiency": None if job.start is None else cpu_efficiency(ledger),
        "memory_efficiency": None if job.start is None or memory is None else round(memory, 4),
        "mem_req_b": job.mem_req_b,
        "max_rss_b": job.max_rss_b,
        "totals": own,
        "devices": [] if job.start is None else [_device_json(d, ledger) for d in ledger.devices],
        "shared": [] if job.start is None else [_device_json(d, ledger) for d in ledger.shared],
    }


def _device_json(device: DeviceLedger, ledger: JobLedger) -> dict[str, Any]:
    """Return one GPU of a run; node and uuid are None for a GPU that no agent reported."""
    use = device.use
    seen = bool(use.gpu_uuid)
    return {
        "node": use.node or None,
        "gpu_uuid": use.gpu_uuid or None,
        "share": use.share,
        "t0": seconds(use.t0_ms) if seen else None,
        "t1": seconds(use.t1_ms) if seen else None,
        "level": str(device.level),
        "untouched": device.untouched,
        "provisional": ledger.running,
        "final": use.final if seen else None,
        "under_used": device.under_used,
        "proc_seen": use.proc_seen if seen else None,
        "mem_max_b": use.mem_max_b,
        "mem_total_b": use.mem_total_b,
        "last_active": None if use.last_active_ms is None else seconds(use.last_active_ms),
        "power_w_at_full": use.power_w_at_full,
        "sm_ratio_at_full": use.sm_ratio_at_full,
        "over_s": seconds(device.over_ms),
        "map_source": use.map_source,
        "confidence": use.confidence,
        **Tally.of([device]).to_json(),
    }


def _thresholds(settings: LedgerSettings) -> dict[str, float]:
    return {name: getattr(settings, name) for name in settings.__slots__}


def _recorded(db: Database) -> bool:
    """Tell whether the store holds a recording: mark `recorded` is not 0."""
    return any(row["value"] for row in db.rows("report_mark", {"key": "recorded"}))
