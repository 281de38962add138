"""The document of a job: its runs with their GPUs, the use of each GPU over time, and other jobs on its nodes."""

from collections.abc import Collection, Sequence
from dataclasses import fields
from typing import Any, Final

from gpuwaste.core.errors import ParseError
from gpuwaste.core.scope import ClusterAccount, account_rows
from gpuwaste.core.typed import convert
from gpuwaste.core.units import DAY_S, HOUR_S
from gpuwaste.jobs.run_store import pick_named
from gpuwaste.ledger.balance.stranding_findings import stranding_findings
from gpuwaste.ledger.judged_run import JudgedRun, RunSums, findings_json, judged_last
from gpuwaste.ledger.ledger import DeviceLedger, JobLedger, LedgerSettings
from gpuwaste.ledger.reports.accounted_rows import accounted_rows, source_check
from gpuwaste.ledger.reports.job_types import (
    AccountedRow,
    DeviceHours,
    DeviceRow,
    HourCell,
    JobDocument,
    Neighbour,
    Neighbours,
    RunRow,
    RunTime,
)
from gpuwaste.ledger.reports.report_builder import is_recorded, notes_of, thresholds_of
from gpuwaste.ledger.reports.rows import finding_rows, ratio
from gpuwaste.ledger.run_judging import Selection, judge_job
from gpuwaste.ledger.tally import Tally, seconds
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.formats.hostlist import expand
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.store.database import Database

MAX_DEVICES: Final = 64
_CELLS: Final = 96
_MOST_NEIGHBOURS: Final = 50
_MOST_NODES: Final = 8  # of a neighbour: further ones are not listed
_MOST_LISTS: Final = 20_000
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

    `accounts` restricts it to runs of these accounts and, where `reader` is given, that user's own. With `hours` it has
    the use of each GPU over time.
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
    """Report on the runs that `pick_named` picked last on this connection, with `keys` only on these of them."""
    jobs = judge_job(db, settings, now)
    told = accounted_rows(db, jobs)
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
        runs=[_run_row(j, told.get(j.job.run_key, ()), settings) for j in jobs],
        findings=finding_rows([*findings_json(runs), *_kept_from_others(db, runs)]),
        notes=notes_of(total),
        thresholds=thresholds_of(settings),
        hours=device_hours(db, [j.job for j in jobs], now) if hours else [],
    )


def _kept_from_others(db: Database, runs: Sequence[JudgedRun]) -> list[dict[str, Any]]:
    """Return the findings of runs that kept GPUs from jobs that waited."""
    keys = {run.key for run in runs}
    return stranding_findings(db, Selection(clusters=sorted({key.cluster for key in keys})), keys) if keys else []


def _run_row(ledger: JobLedger, told: Sequence[AccountedRow], settings: LedgerSettings) -> RunRow:
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
        cpu_efficiency=ratio(ledger.cpu_used_s, ledger.cpu_held_s) if started else None,
        memory_efficiency=round(memory, 4) if started and memory is not None else None,
        totals=convert(Tally.of(ledger.devices).to_json() if started else {}, RunTime),
        devices=[_device_row(d, ledger) for d in ledger.devices] if started else [],
        shared=[_device_row(d, ledger) for d in ledger.shared] if started else [],
        accounted=list(told),
        check=source_check(ledger, told, settings.min_coverage),
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


def device_hours(db: Database, runs: Sequence[JobRecord], now: int) -> list[DeviceHours]:
    """Return the GPUs of the runs that were picked last on this connection and are in `runs`."""
    started = [run for run in runs if run.start is not None]
    if not started:
        return []
    first = min(run.start or 0 for run in started)
    span_s = max(run.end or now for run in started) - first
    bounds = {
        "from_hour": first - first % HOUR_S,
        "from_day": first - first % DAY_S,
        "bin_s": max(1, -(-span_s // (_CELLS * HOUR_S))) * HOUR_S,
        "devices": MAX_DEVICES,
    }
    wanted = {run.run_key for run in started}
    found: dict[tuple[RunKey, str, str], list[HourCell]] = {}
    for row in db.rows("job_hours", bounds):
        key = RunKey(row["cluster"], row["job_id"], row["run_start"])
        if key in wanted:
            cell = HourCell(
                t0=seconds(row["t0_ms"]),
                t1=seconds(row["t1_ms"]),
                known_s=seconds(row["known_ms"]),
                mean_util_pct=round(row["pct_ms"] / row["known_ms"], 2) if row["known_ms"] else None,
            )
            found.setdefault((key, row["node"], row["gpu_uuid"]), []).append(cell)
    return [
        DeviceHours(cluster=key.cluster, job_id=key.job_id, start=key.start, node=node, gpu_uuid=uuid, cells=cells)
        for (key, node, uuid), cells in found.items()
    ]


def neighbours_of(
    db: Database, run: JobRecord, now: int, *, accounts: Collection[ClusterAccount] | None, reader: str | None
) -> Neighbours | None:
    """Return the neighbours of a run; None where it has not started or its nodes are not known.

    `accounts` and `reader` select whose runs are listed, as for a job: None is all accounts.
    """
    own = frozenset(_names(run.nodes))
    if run.start is None or not own:
        return None
    (first_open,) = db.run("neighbour_open").fetchall()[0]
    asked = {"cluster": run.cluster, "from_s": run.start, "to_s": run.end or now + 1, "open_from": first_open}
    lists = [row["nodes"] for row in db.rows("neighbour_lists", {**asked, "most": _MOST_LISTS})]
    shared = {text: sorted(own.intersection(_names(text))) for text in lists}
    wanted = [text for text, nodes in shared.items() if nodes]
    scope = {"accounts": account_rows(accounts), "reader": reader}
    key = {"job_id": run.job_id, "run_start": run.run_key.start}
    rows = db.rows("neighbour_runs", {**asked, **scope, **key, "lists": wanted, "most": _MOST_NEIGHBOURS})
    return Neighbours(
        printed_id=run.printed_id,
        runs=rows[0]["runs"] if rows else 0,
        others=rows[0]["others"] if rows else 0,
        complete=len(lists) < _MOST_LISTS,
        listed=[
            Neighbour(
                printed_id=row["printed_id"],
                name=row["name"],
                user=row["user"],
                state=row["state"],
                start=row["start"],
                end=row["end"],
                gpus=row["gpus"],
                nodes=shared[row["nodes"]][:_MOST_NODES],
            )
            for row in rows
            if row["visible"]
        ],
    )


def _names(text: str) -> list[str]:
    """Return the nodes of a hostlist; none of one that cannot be read."""
    if "[" not in text and "," not in text:
        return [text] if text else []
    try:
        return expand(text)
    except ParseError:
        return []
