"""ActionManager: the one writer of actions: from a rule's intent to its end, each step stored with its event."""

import threading
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from gpuwaste.act.actions.action_store import WAITING, ActionRow, ActionStore, StoredStep
from gpuwaste.act.actions.action_types import ActionReport
from gpuwaste.act.actions.catalogue import actions
from gpuwaste.act.actions.hub.confirmations import Confirmations
from gpuwaste.act.actions.hub.steps import told
from gpuwaste.act.rules.intent import ActionStatus, Intent
from gpuwaste.core import log_event

MAX_FACTS: Final = 32 * 1024  # characters
_OVERDUE: Final = 500
_REFUSED: Final = log_event.error(
    "intent-refused: rule {rule} wants what cannot be done: {reason}",
    "The rule's `do` or the run it names is wrong: `gpuwaste rules check`. Nothing is done.",
)


class ActionManager:
    """Any thread; whoever reads a status and moves it on holds the lock. Raises StoreError."""

    def __init__(self, store: ActionStore, max_per_hour: int) -> None:
        self.store = store
        self.max_per_hour = max_per_hour
        self.confirmations = Confirmations(store)
        self._lock = threading.Lock()

    def intend(self, intents: Sequence[Intent]) -> list[str]:
        """Take up what rules want; returns the ids that are new. An intent that cannot be done is logged, left out."""
        good = []
        for intent in intents:
            if reason := refusal(intent):
                _REFUSED.log(rule=intent.rule, reason=reason)
            else:
                good.append(intent)
        now = self.store.now()
        return self.store.add(good, {intent.id: told(intent, "intended", now) for intent in good})

    def withdraw(self, over: Collection[tuple[str, str]]) -> int:
        """End the actions of these rules and subjects that were not sent yet; returns how many."""
        with self._lock:
            return sum(
                self._move(row, WAITING, "moot", reason="the condition of the rule holds no more")
                for row in self.store.waiting_of(over)
            )

    def waiting(self) -> list[Intent]:
        """Return what rules want and what was not sent yet."""
        return [row.intent for row in self.store.waiting()]

    def drop(self, reasons: Mapping[str, str]) -> int:
        """End actions of rules that were not sent yet, by id, each with its reason; returns how many."""
        if not reasons:
            return 0
        with self._lock:
            rows = self.store.waiting(reasons)
            return sum(self._move(row, WAITING, "moot", reason=reasons[row.intent.id]) for row in rows)

    def confirm(self, notices: Mapping[str, str], for_s: float) -> None:
        """Lend of what rules want these actions from now on, each once its notice was sent, and no others."""
        self.confirmations.take(notices, for_s)
        self.drop(self.confirmations.unwarned())

    def decide(self, row: ActionRow, person: str, *, approve: bool) -> bool:
        """Note that a person approves or refuses an action; false where it is too late for that."""
        status: ActionStatus = "approved" if approve else "refused"
        was: tuple[ActionStatus, ...] = ("intended",) if approve else WAITING
        with self._lock:
            if row.intent.expires_utc <= self.store.now():
                return False
            return self._move(row, was, status, person=person)

    def expire(self) -> int:
        """End the actions that nobody took in time; returns how many."""
        with self._lock:
            return sum(
                self._move(row, WAITING, "expired", reason=self._late(row)) for row in self.store.overdue(_OVERDUE)
            )

    def next(self, kinds: Collection[str]) -> ActionRow | None:
        """Return what to take now: one that was sent without an outcome, else one that may be sent."""
        known = [name for name in kinds if name in actions()]
        return self.store.next(known, fresh=not self.hindrance(), confirmed=self.confirmations.ready())

    def hindrance(self, kind: str = "") -> str:
        """Return why nothing may be sent now, nor an action of a `kind`, "" where it may: mail counts for no rate."""
        if self.store.stopped():
            return "actions are stopped: gpuwaste actions lift"
        rated = _rated()
        if (not kind or kind in rated) and self.store.sent_last_hour(rated) >= self.max_per_hour:
            return f"{self.max_per_hour} actions were sent in the last hour: [actor] max_per_hour"
        return ""

    def report(self, row: ActionRow, report: ActionReport) -> str:
        """Note a step that the actor, or the hub's own mail, reports; returns why it is not taken, "" where it is."""
        with self._lock:
            was = _before(row)
            if report.status == "sent":
                if hindrance := self.hindrance(row.intent.kind):
                    return hindrance
                if row.status in was and (wait := self.confirmations.hindrance(row)):
                    return f"the action {wait}"
                if row.intent.expires_utc <= self.store.now():
                    return "the action has expired"
            plan = report.plan if report.status == "sent" else None
            moved = self._move(row, was, report.status, reason=report.reason, answer=report.answer, plan=plan)
            return "" if moved else f"the action is {self.store.found(row.intent.id)[0].status}"

    def stop(self, *, stop: bool) -> None:
        """Stop to send actions, or lift that; once this returns, no action is noted as sent any more."""
        with self._lock:
            self.store.stop(stop=stop)

    def give_back(self, row: ActionRow, reason: str) -> None:
        """Let an action wait again that was not sent after all."""
        with self._lock:
            status: ActionStatus = "approved" if row.person else "intended"
            sent: tuple[ActionStatus, ...] = ("sent",)
            self.store.move(StoredStep(row.intent.id, sent, status, reason), ())

    def _late(self, row: ActionRow) -> str:
        wait = self.confirmations.hindrance(row) if row.status in _before(row) else ""
        return f"nobody took it in time; it {wait}" if wait else "nobody took it in time"

    def _move(
        self,
        row: ActionRow,
        was: Collection[ActionStatus],
        status: ActionStatus,
        *,
        reason: str = "",
        person: str | None = None,
        answer: str | None = None,
        plan: dict[str, str] | None = None,
    ) -> bool:
        sends = row.sends + (status == "sent")
        who = row.person if person is None else person
        event = told(row.intent, status, self.store.now(), person=who, reason=reason, answer=answer or "", sends=sends)
        step = StoredStep(row.intent.id, was, status, reason, person, plan, answer, sent=status == "sent")
        return self.store.move(step, [event])


def refusal(intent: Intent) -> str:
    """Return why an intent cannot be taken up, "" where it can."""
    kind = actions().get(intent.kind)
    if kind is None:
        return f"no action is called {intent.kind!r:.80}"
    if len(intent.facts) > MAX_FACTS:
        return f"{intent.kind}: facts of {len(intent.facts)} characters, {MAX_FACTS} at most"
    return kind.refusal(intent)


def _rated() -> list[str]:
    """Return the kinds that count for the rate: all that change something in Slurm."""
    return [kind.name for kind in actions().values() if kind.execution is not None]


def _before(row: ActionRow) -> tuple[ActionStatus, ...]:
    """Return from which statuses a report may move an action; one that needs a person is never sent without."""
    ready: tuple[ActionStatus, ...] = WAITING if row.intent.approve == "none" else ("approved",)
    return (*ready, "sent")
