"""NoticeStore: who got a digest of their waste, who did not and why, and who wants no mail, in the hub's store."""

from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

from gpuwaste.core.clock import Clock
from gpuwaste.store.database import Database
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.store.hub.json_rows import to_json

_EVER: Final = 2**53


class NoticeStatus(StrEnum):
    """The status of a notice."""

    DUE = "due"
    LATER = "later"  # the mail server asked to retry
    SENDING = "sending"
    SENT = "sent"
    FAILED = "failed"
    UNCLEAR = "unclear"  # it may have arrived, so it is not sent again
    DRY = "dry"  # decided in a dry run
    NOT = "not"  # by a rule the user gets none


OPEN: Final = (NoticeStatus.DUE, NoticeStatus.LATER)


class NoticeStore:
    """The notices of a hub's store; threads share it as they share the store."""

    def __init__(self, store: HubStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def add_period(self, kind: str, period_end: int, rows: Sequence[Mapping[str, Any]], *, dry: bool) -> bool:
        """Add all notices of a period at once; return false and change nothing if it has some already."""
        now = self._clock.utc_s()
        with self._store.writing() as db:
            key = {"kind": kind, "period_end": period_end, "dry": dry}
            if db.rows("notices_planned", key)[0]["notices"]:
                return False
            add_notices(db, [{**key, "at_utc": now, **row} for row in rows])
            db.run("mark_set", {"key": _mark(kind, dry=dry), "value": period_end})
            if dry:
                # A site that ends its dry run starts with the next period: notices of the dry run are not sent.
                db.run("mark_set", {"key": _mark(kind, dry=False), "value": period_end})
        return True

    def planned(self, kind: str, period_end: int, *, dry: bool) -> bool:
        """Return whether a period has notices already."""
        with self._store.reader() as db:
            found = db.rows("notices_planned", {"kind": kind, "period_end": period_end, "dry": dry})
        return bool(found[0]["notices"])

    def last_period(self, kind: str, *, dry: bool) -> int | None:
        """Return the end of the last period that was decided on."""
        return self._store.mark(_mark(kind, dry=dry))

    def begin_at(self, kind: str, period_end: int, *, dry: bool) -> None:
        """Record that periods up to this one are skipped."""
        self._store.set_mark(_mark(kind, dry=dry), period_end)

    def due(self) -> list[dict[str, Any]]:
        """Return the notices to send now, each with its document, the largest waste first."""
        with self._store.reader() as db:
            return db.rows("notices_due", {"now": self._clock.utc_s()})

    def move(
        self,
        row: Mapping[str, Any],
        status: NoticeStatus,
        detail: str = "",
        *,
        was: Collection[str],
        wait_s: float = 0.0,
    ) -> bool:
        """Change a notice's status; return false if its status was another than expected. Committed when it returns."""
        now = self._clock.utc_s()
        key = {name: row[name] for name in ("kind", "user", "period_end")}
        values = {**key, "status": status, "detail": detail[:400], "was": sorted(was), "now": now}
        with self._store.writing() as db:
            return bool(db.run("notices_set", {**values, "next_utc": now + int(wait_s)}).fetchall())

    def close_interrupted(self) -> int:
        """Give up what was being sent when the hub ended: it may have arrived, and no mail is sent twice."""
        return self._close(
            (NoticeStatus.SENDING,), NoticeStatus.UNCLEAR, "the hub ended while this was sent", _EVER, None
        )

    def close_before(self, kind: str, period_end: int) -> int:
        """Give up what could not be delivered before the next period began."""
        return self._close(OPEN, NoticeStatus.FAILED, "not delivered before the next period", period_end, kind)

    def last_told(self, before: int, *, dry: bool) -> dict[str, int]:
        """Return for each user the end of the last period reported to them, of periods that ended before `before`."""
        with self._store.reader() as db:
            rows = db.rows("notices_last_told", {"before": before, "dry": dry})
        return {row["user"]: int(row["period_end"]) for row in rows}

    def told_since(self, kind: str, since: int, *, dry: bool) -> dict[str, int]:
        """Return how many notices of a kind each user got for periods that ended since a UTC second."""
        with self._store.reader() as db:
            rows = db.rows("notices_told_users", {"kind": kind, "since": since, "dry": dry})
        return {row["user"]: int(row["notices"]) for row in rows}

    def listed(
        self,
        start: int,
        end: int,
        *,
        user: str | None = None,
        kind: str | None = None,
        dry: bool | None = None,
        limit: int = 1000,
    ) -> list[dict[str, Any]]:
        """Return notices of periods that ended in [start, end), the newest period first."""
        values = {"from_s": start, "to_s": end, "user": user, "kind": kind, "dry": dry, "limit": limit}
        with self._store.reader() as db:
            return db.rows("notices_list", values)

    def opted_out(self) -> frozenset[str]:
        """Return who wants no digest."""
        with self._store.reader() as db:
            return frozenset(row["user"] for row in db.rows("opt_outs"))

    def want(self, user: str, *, mail: bool) -> None:
        """Store whether a user wants digests."""
        with self._store.writing() as db:
            if mail:
                db.run("opt_out_remove", {"user": user})
            else:
                db.run("opt_out_add", {"user": user, "now": self._clock.utc_s()})

    def _close(self, was: Collection[str], status: NoticeStatus, detail: str, before: int, kind: str | None) -> int:
        values = {"was": list(was), "status": status, "detail": detail, "before": before, "kind": kind}
        with self._store.writing() as db:
            return len(db.run("notices_close", {**values, "now": self._clock.utc_s()}).fetchall())


def add_notices(db: Database, rows: Sequence[Mapping[str, Any]]) -> None:
    """Add notices, each with its kind, period, status and `at_utc`, in the transaction of what they report."""
    if rows:
        noted = {"detail": "", "tries": 0, "next_utc": 0}
        db.run("notices_add", {"rows": to_json({**noted, **row} for row in rows)})


def _mark(kind: str, *, dry: bool) -> str:
    return f"notify:{kind}:{'dry' if dry else 'live'}"
