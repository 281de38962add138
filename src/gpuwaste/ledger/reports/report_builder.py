"""Builds reports of users, accounts and clusters, and the document of who is wasting GPUs now."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from gpuwaste.core.scope import ClusterAccount
from gpuwaste.core.typed import convert
from gpuwaste.core.units import HOUR_S
from gpuwaste.ledger.balance.stranding_findings import stranding_findings
from gpuwaste.ledger.few_runs import FewRuns, with_sizes
from gpuwaste.ledger.judged_run import RunSums
from gpuwaste.ledger.judged_runs import JudgedRuns, judged_runs, runs_judged_last, runs_of_users
from gpuwaste.ledger.ledger import LedgerSettings
from gpuwaste.ledger.open_runs import OpenRunSnapshot
from gpuwaste.ledger.reports.report_question import EVERY_LINE, LineFilter
from gpuwaste.ledger.reports.report_types import (
    FindingCount,
    GpuTime,
    LevelSum,
    ReportDocument,
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
from gpuwaste.ledger.right_size.reads import sized_findings
from gpuwaste.ledger.run_judging import Selection, judge_runs
from gpuwaste.ledger.tally import Tally
from gpuwaste.store.database import Database

Tallies = Mapping[tuple[str, ClusterAccount], Tally]
"""Sums of own GPUs by user and account of a cluster."""


@dataclass(frozen=True, slots=True)
class Clusters:
    """The requested clusters of a report, with a row for each; no names: all."""

    names: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class ReportLines:
    """How many of the largest lines and findings a report has, and which lines of the job table.

    `clusters` have a row each even without runs; None: there are no rows of clusters.
    """

    limit: int | None = None
    offset: int = 0
    lines: LineFilter = EVERY_LINE
    clusters: Collection[str] | None = None


def report_document(  # noqa: PLR0917 the order of a request; the hub calls it this way
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

    `accounts` restricts it to runs of these accounts, for a reader who may see no others, and `clusters` to those of
    some clusters, with a row for each; `limit` restricts the job table and the findings to that many with the largest
    waste; `lines` and `offset` apply only to the job table. With `kept` the report is as of the instant of that
    snapshot, and `now` and the end are not after it.
    """
    asked = ReportLines(limit, offset, lines, None if clusters is None else clusters.names or ())
    with judged_runs(db, _selected(scope, name, start, end, accounts, clusters), settings, now, kept=kept) as runs:
        return _document(
            runs,
            (scope, name, start, end),
            settings,
            now,
            asked=asked,
            recorded=is_recorded(db),
            sized=_about_requests(db, _selected(scope, name, start, end, accounts, clusters)),
        )


def user_reports(
    db: Database,
    users: Collection[str],
    window: tuple[int, int],
    settings: LedgerSettings,
    kept: OpenRunSnapshot,
    *,
    asked: ReportLines,
) -> dict[str, ReportDocument]:
    """Return the `report_document` of each of several users; those with many runs are left out.

    Raises OutdatedError.
    """
    recorded = is_recorded(db)
    return {
        user: _document(
            runs,
            ("user", user, *window),
            settings,
            kept.now,
            asked=asked,
            recorded=recorded,
            sized=_about_requests(db, Selection(*window, user=user)),
        )
        for user, runs in runs_of_users(db, users, window, settings, kept).items()
    }


def _about_requests(db: Database, selection: Selection) -> list[dict[str, Any]]:
    """Return the findings about what jobs requested: more than such jobs need, and more than others could spare."""
    return [*stranding_findings(db, selection), *sized_findings(db, selection)]


def _document(
    runs: JudgedRuns | FewRuns,
    subject: tuple[Scope, str, int, int],
    settings: LedgerSettings,
    now: int,
    *,
    asked: ReportLines,
    recorded: bool,
    sized: list[dict[str, Any]],
) -> ReportDocument:
    scope, name, start, end = subject
    sums = runs.sums()
    total = RunSums.of(sums.values())
    rows, matching = runs.lines(asked.limit, total.jobs, asked.lines, asked.offset)
    findings, finding_counts = with_sizes(*runs.findings(asked.limit), sized, asked.limit)
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
        notes=notes_of(total, cut),
        thresholds=thresholds_of(settings),
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
    """Return only the totals of `report_document`."""
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

    `accounts` restricts it to runs of these accounts and, where `reader` is given, that user's own.
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
        notes=notes_of(total),
    )


def notes_of(sums: RunSums, cut: int = 0) -> list[str]:
    """Return the notes about some of the runs that a reader must know; `cut` runs are cut by the window."""
    said = (
        (sums.running, "still running: figures are provisional"),
        (sums.beyond, "reported on more GPUs than in accounting: the additional GPUs are not counted"),
        (cut, "partly outside the requested time: totals count only the part inside, job lines the full run"),
        (sums.conflicts, "with GPUs that several jobs claim: this GPU time is unknown"),
    )
    return [f"{'1 job' if count == 1 else f'{count} jobs'} {words}" for count, words in said if count]


def thresholds_of(settings: LedgerSettings) -> Thresholds:
    """Return the thresholds as documents carry them."""
    return convert(settings, Thresholds, from_attributes=True)


def is_recorded(db: Database) -> bool:
    """Return whether the store holds a recording: mark `recorded` is not 0."""
    return any(row["value"] for row in db.rows("report_mark", {"key": "recorded"}))
