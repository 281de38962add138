"""Planner: decides on the notices of a period, the next one or a past one, or on one user's up to now."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from gpuwaste.act.notify.mail_addresses import AddressBook, read_names
from gpuwaste.act.notify.notice_decisions import (
    HELD_BACK,
    NoticeDecision,
    UserState,
    addressed,
    decide,
    reach_s,
    staff_list,
)
from gpuwaste.act.notify.notice_store import NoticeStore
from gpuwaste.act.notify.notice_types import StaffList
from gpuwaste.act.notify.notify_settings import NotifySettings
from gpuwaste.advice.hold_out import HoldOut
from gpuwaste.ledger.judged_run import JudgedRun
from gpuwaste.ledger.judged_runs import judged_runs
from gpuwaste.ledger.ledger import LedgerSettings
from gpuwaste.ledger.run_judging import Selection
from gpuwaste.store.hub.hub_store import HubStore

Period = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Planner:
    """Reads the store, and changes nothing."""

    store: HubStore
    notices: NoticeStore
    settings: NotifySettings
    ledger: LedgerSettings
    book: AddressBook
    hold_out: HoldOut = field(default_factory=HoldOut)
    campaigns: Callable[[], Sequence[str]] = tuple
    """What each campaign has shown, a sentence each."""

    def digests(self, period: Period, now: int, *, dry: bool) -> list[NoticeDecision]:
        """Decide on every user of a period. Raises StoreError, AddressError.

        Only here campaigns hold digests back: a preview is the same for everybody.
        """
        self.book.refresh()
        told = self.notices.last_told(period[1], dry=dry)
        return self._decide(period, now, told, self.unwilling(), hold_out=self.hold_out)

    def replay(self, start: int, end: int, now: int) -> list[tuple[Period, list[NoticeDecision]]]:
        """Decide on each period that ended in (start, end], as if no digest had been sent before; opt-outs are today's.

        Raises StoreError, AddressError.
        """
        self.book.refresh()
        told: dict[str, int] = {}
        unwilling = self.unwilling()
        found = []
        for period in self.settings.digest.periods(start, min(end, now)):
            decisions = self._decide(period, now, told, unwilling)
            told |= {d.user: period[1] for d in decisions if d.told}
            found.append((period, decisions))
        return found

    def preview(self, user: str, now: int) -> NoticeDecision | None:
        """Decide on one user as if a period ended now; None if they have no GPU job that ended in it."""
        self.book.refresh()
        length = self.settings.digest.period(now)
        last = self.notices.last_told(now, dry=self.settings.dry_run)
        period = (now - (length[1] - length[0]), now)
        decisions = self._decide(period, now, last, self.unwilling(), user=user)
        return decisions[0] if decisions else None

    def staff(self, period: Period, now: int) -> StaffList:
        """Return the weekly list of who wasted most. Raises StoreError."""
        with self.store.reader() as db, judged_runs(db, Selection(*period), self.ledger, now, cut=False) as runs:
            found = staff_list(runs.by_user(), period, self.settings.rules.min_coverage, self.settings.staff_users)
        return replace(found, campaigns=list(self.campaigns()))

    def _decide(
        self,
        period: Period,
        now: int,
        told: Mapping[str, int],
        unwilling: frozenset[str],
        *,
        user: str | None = None,
        hold_out: HoldOut | None = None,
    ) -> list[NoticeDecision]:
        rules = self.settings.rules
        reach = Selection(period[1] - reach_s(period, rules), period[1], user=user)
        standing = UserState(unwilling, told)
        with self.store.reader() as db, judged_runs(db, reach, self.ledger, now, cut=False) as runs:
            decisions = [
                decision if hold_out is None else _held_back(decision, theirs, hold_out)
                for theirs in runs.by_user()
                for decision in decide(theirs, period, rules, standing)
            ]
        return addressed(decisions, rules, self.book.address_of)

    def unwilling(self) -> frozenset[str]:
        """Return who wants no mail. Raises AddressError: without the file no mail is sent."""
        listed = self.settings.opt_out_file
        said = self.notices.opted_out()
        return said if listed is None else said | read_names(listed)


def _held_back(decision: NoticeDecision, runs: Iterable[JudgedRun], hold_out: HoldOut) -> NoticeDecision:
    """Return a decision, without its digest where a campaign holds it back from one of the user's accounts."""
    if not decision.told:
        return decision
    accounts = {run.account for run in runs if decision.start <= (run.end or 0) < decision.end}
    held = any(hold_out.holding_back("digest", "", decision.user, one, decision.end - 1) for one in accounts)
    return replace(decision, why=HELD_BACK, digest=None) if held else decision
