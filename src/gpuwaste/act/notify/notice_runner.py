"""NoticeRunner: decides on each period once, when all its data is known, and sends what is due; a thread of the hub."""

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from msgspec.structs import asdict, replace

from gpuwaste.act.notify.limit_notices import LIMIT, limit_subject, limit_text
from gpuwaste.act.notify.mailer import Delivery, Mailer, ServerDownError, make_message
from gpuwaste.act.notify.notice_decisions import NoticeDecision
from gpuwaste.act.notify.notice_planner import Period, Planner
from gpuwaste.act.notify.notice_store import OPEN, NoticeStatus, NoticeStore
from gpuwaste.act.notify.notice_text import digest_subject, digest_text, staff_subject, staff_text
from gpuwaste.act.notify.notice_types import Digest, LimitNotice, StaffList
from gpuwaste.core import log_event
from gpuwaste.core.clock import Clock
from gpuwaste.core.codec import convert
from gpuwaste.core.errors import GpuwasteError
from gpuwaste.core.repeat_suppressor import RepeatSuppressor
from gpuwaste.core.worker import Worker, backoff_s
from gpuwaste.show.layout import Look
from gpuwaste.show.terminal_cells import harmless_document

DIGEST: Final = "digest"
STAFF: Final = "staff"
EVERY_S: Final = 10.0
Told = Digest | StaffList | LimitNotice
_KINDS: Final[Mapping[str, type[Told]]] = {DIGEST: Digest, STAFF: StaffList, LIMIT: LimitNotice}
_RETRY_FIRST_S: Final = 300.0
_RETRY_MAX_S: Final = 7200.0
_INTERRUPTED: Final = log_event.warning(
    "notices-interrupted: {count} mails were being sent when the hub stopped; not sent again",
    "Whether they arrived is unknown: `gpuwaste digest list` shows them as unclear.",
)
_WAITING: Final = log_event.warning(
    "notices-waiting: mails delayed: {error}",
    "Caused by the mail server, the address file or command, or late accounting. The hub retries until it succeeds.",
)
_NOT_SENT: Final = log_event.warning(
    "notice-not-sent: mail to {address}: {status}: {detail}",
    "The mail server's reply to one mail. Status later is retried, failed and unclear are not: `gpuwaste digest list`.",
)
_PERIOD: Final = log_event.info("notices-decided: period until {end}: notices for {told} of {users} users")


@dataclass(frozen=True, slots=True)
class Accounting:
    """How far accounting was read, UTC seconds, and whether the last import failed."""

    read_until: int | None
    failed: bool


class NoticeRunner:
    """`worker` runs it; `decide` may be called by other threads."""

    def __init__(
        self,
        planner: Planner,
        mailer: Mailer,
        clock: Clock,
        accounting: Callable[[], Accounting],
        count: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._planner = planner
        self._settings = planner.settings
        self._notices: NoticeStore = planner.notices
        self._mailer = mailer
        self._clock = clock
        self._accounting = accounting
        self._count = count
        self._lock = threading.Lock()
        self._down_until_us = 0
        self._down_times = 0
        self._trouble = RepeatSuppressor()
        self.worker = Worker("notices", self.step, clock)

    def begin(self) -> None:
        """Give up what the previous hub was sending; the first period ever is the next one. Raises StoreError."""
        interrupted = self._notices.close_interrupted()
        if interrupted:
            _INTERRUPTED.log(count=interrupted)
        for kind, schedule in ((DIGEST, self._settings.digest), (STAFF, self._settings.weekly)):
            if self._notices.last_period(kind, dry=self._dry) is None:
                self._notices.begin_at(kind, schedule.last_end(self._clock.utc_s()), dry=self._dry)

    def step(self) -> float:
        """Do what is due. Raises no error of the store, the addresses or the mail server."""
        try:
            self._decide_due()
            self._send_due()
        except GpuwasteError as error:
            if self._trouble.news(str(error)):
                _WAITING.log(error=error)
        else:
            self._trouble.over()
        return EVERY_S

    def missing(self, period: Period) -> str:
        """Return what is still unknown of a period, empty if nothing is: no mail is sent on incomplete data."""
        known = period[1] + self._settings.settle_s
        accounting = self._accounting()
        left_s = known - self._clock.utc_s()
        if left_s > 0:
            return f"waiting {int(left_s)} s for late reports of nodes and accounting"
        if accounting.failed:
            return "accounting cannot be read"
        if accounting.read_until is None or accounting.read_until < known:
            return "accounting is not read up to the end of the period yet"
        return ""

    def decide(self) -> tuple[Period, list[NoticeDecision], bool]:
        """Decide on the newest period now and store that; the last value is false if that was done before.

        Raises StoreError, AddressError.
        """
        period = self._settings.digest.period(self._clock.utc_s())
        with self._lock:
            if self._notices.planned(DIGEST, period[1], dry=self._dry):
                return period, [], False
            # What is not delivered by now was not reported: it counts for the new period.
            self._notices.close_before(DIGEST, period[1])
            decisions = self._planner.digests(period, self._clock.utc_s(), dry=self._dry)
            rows = [self._row(period, decision) for decision in decisions]
            return period, decisions, self._notices.add_period(DIGEST, period[1], rows, dry=self._dry)

    def _decide_due(self) -> None:
        now = self._clock.utc_s()
        weekly = self._settings.weekly.period(now)
        if self._new(DIGEST, self._settings.digest.last_end(now)) and self._complete(self._settings.digest.period(now)):
            period, decisions, _ = self.decide()
            told = sum(d.told for d in decisions)
            _PERIOD.log(end=period[1], told=told, users=len(decisions))
        if self._settings.staff and self._new(STAFF, weekly[1]) and self._complete(weekly):
            self._decide_staff(weekly)

    def _new(self, kind: str, period_end: int) -> bool:
        last = self._notices.last_period(kind, dry=self._dry)
        return last is None or last < period_end

    def _complete(self, period: Period) -> bool:
        return not self.missing(period)

    def _decide_staff(self, period: Period) -> None:
        document = self._planner.staff(period, self._clock.utc_s())
        sums = asdict(document.waste) | {"exempt_s": 0.0}
        rows = [
            {
                "user": address, "period_start": period[0], "status": self._first, "why": "", "address": address,
                **sums, "coverage": None, "document": json.dumps(document.to_json()),
            }
            for address in self._settings.staff
        ]  # fmt: skip
        with self._lock:
            self._notices.close_before(STAFF, period[1])
            self._notices.add_period(STAFF, period[1], rows, dry=self._dry)

    def _row(self, period: Period, decision: NoticeDecision) -> dict[str, Any]:
        return {
            "user": decision.user,
            "period_start": period[0],
            "status": self._first if decision.told else NoticeStatus.NOT,
            "why": decision.why,
            "address": decision.address,
            "jobs": decision.jobs,
            "gpu_s": decision.gpu_s,
            "wasted_s": decision.wasted_s,
            "exempt_s": decision.exempt_s,
            "coverage": decision.coverage,
            "document": json.dumps(decision.digest.to_json()) if decision.digest and not self._dry else "",
        }

    def _send_due(self) -> None:
        if self._dry or self._clock.mono_us() < self._down_until_us:
            return
        for row in self._notices.due():
            if self.worker.stopping.is_set() or self._settings.quiet(self._clock.utc_s()):
                return
            try:
                self._send(row)
            except ServerDownError as error:
                self._down_times += 1
                down_s = backoff_s(self._down_times, _RETRY_FIRST_S, _RETRY_MAX_S)
                self._down_until_us = self._clock.mono_us() + int(down_s * 1e6)
                self._notices.move(row, NoticeStatus.LATER, str(error), was=(NoticeStatus.SENDING,))
                raise
            self._down_times = 0

    def _send(self, row: Mapping[str, Any]) -> None:
        """Claim one notice, send it, and store the outcome; after a crash in between it is not sent again."""
        if row["kind"] != STAFF and row["user"] in self._planner.notices.opted_out():
            self._notices.move(row, NoticeStatus.FAILED, "the user opted out before it was sent", was=OPEN)
            return
        if not self._notices.move(row, NoticeStatus.SENDING, was=OPEN):
            return
        delivery = self._deliver(row)
        later = delivery.status is NoticeStatus.LATER
        wait_s = backoff_s(row["tries"] + 1, _RETRY_FIRST_S, _RETRY_MAX_S) if later else 0.0
        self._notices.move(row, delivery.status, delivery.detail, was=(NoticeStatus.SENDING,), wait_s=wait_s)
        self._count(delivery.status)
        if delivery.status is not NoticeStatus.SENT:
            _NOT_SENT.log(address=row["address"], status=delivery.status, detail=delivery.detail)

    def _deliver(self, row: Mapping[str, Any]) -> Delivery:
        document: Told = convert(json.loads(row["document"]), _KINDS[row["kind"]], "notice")
        if isinstance(document, LimitNotice):
            document = _still_near(document, self._clock.utc_s())
            if not document.jobs:
                return Delivery(NoticeStatus.FAILED, "not delivered before the time limit")
        subject, text = words(document, Look(zone=self._settings.zone), self._settings.text)
        try:
            message = make_message(
                sender=self._settings.sender,
                reply_to=self._settings.reply_to,
                to=row["address"],
                subject=subject,
                text=text,
                at_utc=self._clock.utc_s(),
                key=f"{row['kind']} {row['user']} {row['period_end']}",
            )
        except ValueError as error:
            return Delivery(NoticeStatus.FAILED, f"no mail can be made: {error}")
        return self._mailer.send(message, self._settings.sender, row["address"])

    @property
    def _dry(self) -> bool:
        return self._settings.dry_run

    @property
    def _first(self) -> NoticeStatus:
        return NoticeStatus.DRY if self._dry else NoticeStatus.DUE


def _still_near(document: LimitNotice, now: int) -> LimitNotice:
    """Return the notice as of now: a limit that has passed is not reported as near."""
    return replace(document, generated=now, jobs=[job for job in document.jobs if job.limit_at > now])


def words(document: Told, look: Look, end: str) -> tuple[str, str]:
    """Return subject and text of a mail; characters in the document that could act on the reader are replaced."""
    shown = harmless_document(document)
    if isinstance(shown, StaffList):
        return staff_subject(shown, look), staff_text(shown, look, end)
    if isinstance(shown, LimitNotice):
        return limit_subject(shown, look), limit_text(shown, look, end)
    return digest_subject(shown, look), digest_text(shown, look, end)
