"""LimitNotices: who gets mail about jobs that will probably reach their time limits, who does not, and its text."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from gpuwaste.act.notify.notice_planner import Planner
from gpuwaste.act.notify.notice_store import NoticeStatus, add_notices
from gpuwaste.act.notify.notice_types import LimitJob, LimitNotice
from gpuwaste.advice.rescore_store import LimitForecast
from gpuwaste.core.text import harmless
from gpuwaste.core.units import DAY_S, MINUTE_S
from gpuwaste.show.layout import COLUMNS, Look, wrapped
from gpuwaste.show.terminal_cells import clock, fit, local_time, percent, uncut
from gpuwaste.store.database import Database

LIMIT: Final = "limit"
_ROWS: Final = 40


@dataclass(frozen=True, slots=True)
class LimitNotices:
    """Reads addresses, opt-outs and what was sent in the last day; changes nothing."""

    planner: Planner

    def writer(self, near: Sequence[LimitForecast], now: int) -> Callable[[Database], None]:
        """Return the writer of the notices of `rows`, for the transaction of the predictions. Raises as `rows` does."""
        rows = self.rows(near, now)
        return lambda db: add_notices(db, rows)

    def rows(self, near: Sequence[LimitForecast], now: int) -> list[dict[str, Any]]:
        """Return the notices of jobs that are near their limits, one for each user. Raises StoreError, AddressError.

        Nothing is sent for a job whose limit is short, or whose kind always runs to its limit.
        """
        settings = self.planner.settings
        if not settings.limit_mail:
            return []
        told = [one for one in near if not one.said.usual and (one.job.time_limit_s or 0) >= settings.limit_min_s]
        by_user: dict[str, list[LimitForecast]] = {}
        for one in sorted(told, key=_reached):
            by_user.setdefault(one.job.user, []).append(one)
        if not by_user:
            return []
        self.planner.book.refresh()
        unwilling = self.planner.unwilling()
        sent = self.planner.notices.told_since(LIMIT, now - DAY_S, dry=settings.dry_run)
        return [
            self._row(user, theirs, now, opted_out=user in unwilling, sent=sent.get(user, 0))
            for user, theirs in sorted(by_user.items())
        ]

    def _row(self, user: str, near: Sequence[LimitForecast], now: int, *, opted_out: bool, sent: int) -> dict[str, Any]:
        """Return the notice of one user as the store takes it."""
        settings = self.planner.settings
        why, address = "", ""
        if opted_out:
            why = "opted_out"
        elif sent >= settings.limit_mails:
            why = "day_cap"
        elif not (address := self.planner.book.address_of(user)):
            why = "no_address"
        first = NoticeStatus.DRY if settings.dry_run else NoticeStatus.DUE
        document = "" if why or settings.dry_run else json.dumps(notice_of(user, near, now).to_json())
        return {
            "kind": LIMIT, "user": user, "period_start": now, "period_end": now, "dry": settings.dry_run,
            "status": NoticeStatus.NOT if why else first, "why": why, "address": address, "at_utc": now,
            "jobs": len(near), "gpu_s": 0.0, "wasted_s": 0.0, "exempt_s": 0.0, "coverage": None, "document": document,
        }  # fmt: skip


def notice_of(user: str, near: Iterable[LimitForecast], now: int) -> LimitNotice:
    """Return the content of a notice to a user."""
    jobs = [
        LimitJob(
            printed_id=one.job.printed_id or str(one.job.job_id),
            name=one.job.name,
            partition=one.job.partition,
            time_limit_s=one.job.time_limit_s or 0,
            limit_at=_reached(one),
            p=one.said.limit_p or 0.0,
        )
        for one in near
    ]
    return LimitNotice(user=user, generated=now, jobs=jobs)


def _reached(one: LimitForecast) -> int:
    return one.said.limit_at or 0


def limit_subject(document: LimitNotice, look: Look) -> str:
    """Return the subject: the job and when, or how many jobs."""
    first = document.jobs[0]
    if len(document.jobs) == 1:
        at = local_time(first.limit_at, look.zone)[:16]
        return f"Job {first.printed_id} will probably reach its time limit at {at}"
    return f"{len(document.jobs)} of your jobs will probably reach their time limits"


def limit_text(document: LimitNotice, look: Look, end: str) -> str:
    """Return the mail: which jobs, when, what the user can do."""
    jobs = document.jobs
    said = f"{len(jobs)} of your jobs will probably reach their time limits, the first in {_minutes(document)}."
    if len(jobs) == 1:
        said = f"Job {jobs[0].printed_id} will probably reach its time limit in {_minutes(document)}."
    lines = [
        f"Dear {harmless(document.user)},",
        "",
        *_paragraph(f"{said} Slurm ends a job at its limit; what the job has not saved by then is lost."),
        "",
        *look.table(("JOBID", "LIMIT", "REACHED AT", "CHANCE", "NAME"), _rows(jobs, look), frozenset({0, 4})),
    ]
    if len(jobs) > _ROWS:
        lines.append(f"  ... and {len(jobs) - _ROWS} more")
    lines += [
        "",
        *_paragraph("The chance is an estimate from how long your earlier jobs ran. The job itself was not changed."),
        "",
        "What you can do:",
        "",
        "  * save a checkpoint, if the job can",
        "  * ask the support of this cluster for a longer limit: users cannot extend it",
        "  * request a longer limit for the next job: #SBATCH --time=...",
        "",
        "  gpuwaste job JOBID         one job, each of its GPUs",
        "  gpuwaste notify off        stop these mails",
    ]
    lines += ["", *(harmless(line) for line in end.splitlines())] if end else []
    return "\n".join(lines) + "\n"


def _rows(jobs: list[LimitJob], look: Look) -> list[tuple[str, ...]]:
    return [
        (
            uncut(job.printed_id),
            clock(job.time_limit_s),
            local_time(job.limit_at, look.zone)[:16],
            percent(job.p),
            fit(job.name, 24),
        )
        for job in jobs[:_ROWS]
    ]


def _minutes(document: LimitNotice) -> str:
    left_s = max(0, document.jobs[0].limit_at - document.generated)
    count = round(left_s / MINUTE_S)
    if count < 1:
        return "less than a minute"
    return "1 minute" if count == 1 else f"{count} minutes"


def _paragraph(text: str) -> list[str]:
    return wrapped(text, COLUMNS - 4)
