"""LimitNotices: which owners of jobs that will probably reach their limits get mail, and why others get none."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from gpuwaste.act.notify.notice_store import NoticeStatus, add_notices
from gpuwaste.act.notify.notice_types import LimitJob, LimitNotice
from gpuwaste.act.notify.planner import Planner
from gpuwaste.advice.rescoring.rescore import LimitForecast
from gpuwaste.core.units import DAY_S
from gpuwaste.store.database import Database

LIMIT: Final = "limit"


@dataclass(frozen=True, slots=True)
class LimitNotices:
    """Reads addresses, opt-outs and what was sent in the last day; changes nothing."""

    planner: Planner

    def writer(self, near: Sequence[LimitForecast], now: int) -> Callable[[Database], None]:
        """Return what writes the notices of `rows`, in the transaction of what was said. Raises as `rows` does."""
        rows = self.rows(near, now)
        return lambda db: add_notices(db, rows)

    def rows(self, near: Sequence[LimitForecast], now: int) -> list[dict[str, Any]]:
        """Return the notices of jobs that are near their limits, one for each user. Raises StoreError, AddressError.

        Nothing is sent of a job whose limit is short, nor of one of a kind that always runs to its limit.
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
    """Return what a user is told."""
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
