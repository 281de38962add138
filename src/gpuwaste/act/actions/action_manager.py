"""ActionManager: the one writer of actions: from a rule's intent to its end, each step stored with its event.

An action is handed out only while the last pass of the rules confirms it, and after its warning mail was sent.
"""

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from gpuwaste.act.actions.action_kind import actions
from gpuwaste.act.actions.action_store import WAITING, ActionStore
from gpuwaste.act.actions.action_types import ActionEntry, ActionReport, ActionStatus
from gpuwaste.core import log_event
from gpuwaste.jobs.events.envelope import StoredEvent, tell
from gpuwaste.jobs.events.kinds.action import ActionStep
from gpuwaste.slurm.run_key import RunKey

MAX_FACTS: Final = 32 * 1024  # characters
_OVERDUE: Final = 500
_REFUSED: Final = log_event.error(
    "intent-refused: rule {rule} requests an impossible action: {reason}",
    "The rule's `do` or the run it names is wrong: `gpuwaste rules check`. Nothing is done.",
)
_ENDS: Final = 4  # from this severity on an action ends the run: requeue, resubmit, cancel
_NOT_YET: Final = "waits until a pass of the rules has confirmed that its condition still holds"
_SHOWN: Final = 12  # characters of an id
_SENT: Final[tuple[ActionStatus, ...]] = ("sent",)
_OPEN: Final = WAITING + _SENT
_FAMILY: Final = "action."
ActionGate = Callable[[ActionEntry], str]
"""Returns why an action must not be sent now, "" if it may."""


class ActionManager:
    """For any thread; a thread that reads a status and changes it holds the lock. Raises StoreError."""

    def __init__(self, store: ActionStore, max_per_hour: int, gate: ActionGate = lambda _: "") -> None:
        """`gate` is asked last, before an action is recorded as sent."""
        self.store = store
        self.max_per_hour = max_per_hour
        self._gate = gate
        self.confirmations = Confirmations(store)
        self._lock = threading.Lock()

    def intend(self, intents: Sequence[ActionEntry]) -> list[str]:
        """Accept the intents of rules; return the new ids. An intent that cannot be executed is logged and left out."""
        good = []
        for intent in intents:
            if reason := refusal(intent):
                _REFUSED.log(rule=intent.rule, reason=reason)
            else:
                good.append(intent)
        now = self.store.now()
        return self.store.add(good, {intent.id: told(intent, "intended", now) for intent in good})

    def withdraw(self, over: Collection[tuple[str, str]]) -> int:
        """End the actions of these rules and subjects that were not sent yet; return how many."""
        with self._lock:
            return sum(
                self._move(row, WAITING, "moot", reason="the condition of the rule no longer holds")
                for row in self.store.waiting_of(over)
            )

    def hold_back(
        self, runs: Collection[RunKey], record: Callable[[Collection[RunKey]], None]
    ) -> tuple[list[ActionEntry], int]:
        """Let `record` close the gate for runs, and end their waiting actions that it stops.

        Return the actions that were sent before, and how many were ended. For a run with such an action the gate is not
        closed. No action is recorded as sent meanwhile.
        """
        with self._lock:
            rows = self.store.of_runs(runs)
            late = [row for row in rows if _too_late(row)]
            free = [run for run in runs if run not in {row.run for row in late}]
            if not free:
                return late, 0
            record(free)
            waiting = [(row, self._gate(row)) for row in rows if row.status in WAITING and row.run in free]
            return late, sum(self._move(row, WAITING, "moot", reason=why) for row, why in waiting if why)

    def waiting(self) -> list[ActionEntry]:
        """Return the intents of rules that were not sent yet."""
        return self.store.waiting()

    def drop(self, reasons: Mapping[str, str]) -> int:
        """End actions of rules that were not sent yet, by id, each with its reason; return how many."""
        if not reasons:
            return 0
        with self._lock:
            rows = self.store.waiting(reasons)
            return sum(self._move(row, WAITING, "moot", reason=reasons[row.id]) for row in rows)

    def confirm(self, notices: Mapping[str, str], for_s: float) -> None:
        """From now on hand out only these actions of rules, each once its notice was sent."""
        self.confirmations.take(notices, for_s)
        self.drop(self.confirmations.unwarned())

    def decide(self, row: ActionEntry, person: str, *, approve: bool) -> bool:
        """Record that a person approves or refuses an action; return false if it is too late."""
        status: ActionStatus = "approved" if approve else "refused"
        was: tuple[ActionStatus, ...] = ("intended",) if approve else WAITING
        with self._lock:
            if row.expires <= self.store.now():
                return False
            return self._move(row, was, status, person=person)

    def expire(self) -> int:
        """End the actions that nobody claimed in time; return how many."""
        with self._lock:
            return sum(
                self._move(row, WAITING, "expired", reason=self._late(row)) for row in self.store.overdue(_OVERDUE)
            )

    def next(self, kinds: Collection[str]) -> ActionEntry | None:
        """Return the next action: one that was sent without an outcome, else one that may be sent."""
        known = [name for name in kinds if name in actions()]
        return self.store.next(known, fresh=not self.hindrance(), confirmed=self.confirmations.ready())

    def hindrance(self, kind: str = "") -> str:
        """Return why nothing, or no action of a `kind`, may be sent now, "" if it may: mail counts for no rate."""
        if self.store.stopped():
            return "actions are stopped: gpuwaste rules resume"
        rated = _rated()
        if (not kind or kind in rated) and self.store.sent_last_hour(rated) >= self.max_per_hour:
            return f"{self.max_per_hour} actions were sent in the last hour: [actor] max_per_hour"
        return ""

    def report(self, row: ActionEntry, report: ActionReport) -> str:
        """Record a step reported by the actor or the hub's own mail; return why it is not accepted, "" if it is."""
        with self._lock:
            was = _before(row)
            if report.status == "sent":
                if hindrance := self.hindrance(row.kind):
                    return hindrance
                if closed := self._gate(row):
                    if row.status in _SENT:  # without an outcome: it would block all others
                        self._move(row, _SENT, "failed", reason=f"no effect in Slurm; not sent again: {closed}")
                    return f"the run is {closed}"
                if row.status in was and (wait := self.confirmations.hindrance(row)):
                    return f"the action {wait}"
                if row.expires <= self.store.now():
                    return "the action has expired"
            plan = report.plan if report.status == "sent" else None
            moved = self._move(row, was, report.status, reason=report.reason, answer=report.answer, plan=plan)
            return "" if moved else f"the action is {self.store.found(row.id)[0].status}"

    def stop(self, *, stop: bool) -> None:
        """Stop sending actions, or resume; once this returns after a stop, no action is recorded as sent any more."""
        with self._lock:
            self.store.stop(stop=stop)

    def give_back(self, row: ActionEntry, reason: str) -> None:
        """Return an action that was not sent after all to its waiting status."""
        with self._lock:
            status: ActionStatus = "approved" if row.person else "intended"
            self.store.move(row.id, _SENT, status, reason=reason)

    def _late(self, row: ActionEntry) -> str:
        wait = self.confirmations.hindrance(row) if row.status in _before(row) else ""
        return f"no actor took the action in time; it {wait}" if wait else "no actor took the action in time"

    def _move(
        self,
        row: ActionEntry,
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
        event = told(row, status, self.store.now(), person=who, reason=reason, answer=answer or "", sends=sends)
        return self.store.move(row.id, was, status, [event], reason=reason, person=person, plan=plan, answer=answer)


def refusal(intent: ActionEntry) -> str:
    """Return why an intent is not accepted, "" if it is."""
    kind = actions().get(intent.kind)
    if kind is None:
        return f"there is no action {intent.kind!r:.80}"
    if len(intent.facts) > MAX_FACTS:
        return f"{intent.kind}: facts of {len(intent.facts)} characters, {MAX_FACTS} at most"
    return kind.refusal(intent)


def _rated() -> list[str]:
    """Return the kinds that count for the rate: all that change something in Slurm."""
    return [kind.name for kind in actions().values() if kind.execution is not None]


def _before(row: ActionEntry) -> tuple[ActionStatus, ...]:
    """Return the statuses from which a report may move an action; one that needs approval is never sent without it."""
    ready: tuple[ActionStatus, ...] = WAITING if row.approve == "none" else ("approved",)
    return ready + _SENT


def _too_late(row: ActionEntry) -> bool:
    """Return whether an action may have ended its run already; after a signal or a checkpoint it goes on."""
    kind = actions().get(row.kind)
    return kind is not None and kind.severity >= _ENDS and row.status in {*_SENT, "confirmed"}


@dataclass(frozen=True, slots=True)
class _Pass:
    """The result of one pass: the notice of each action that is still wanted, until UTC second `end`."""

    begin: int = 0
    end: int = 0
    notices: Mapping[str, str] = field(default_factory=dict)


class Confirmations:
    """In memory: after a start nothing is confirmed until the rules have passed. Any thread reads, one writes."""

    def __init__(self, store: ActionStore) -> None:
        self._store = store
        self._pass = _Pass()

    def take(self, notices: Mapping[str, str], for_s: float) -> None:
        """Store the result of a pass."""
        now = self._store.now()
        self._pass = _Pass(now, now + int(for_s), dict(notices))

    def ready(self) -> Collection[str]:
        """Return the ids of the actions that may be handed out now. Raises StoreError."""
        notices = self._notices()
        ends = self._store.ends({one for one in notices.values() if one})
        return [id_ for id_, one in notices.items() if not one or (one in ends and ends[one][0] == "confirmed")]

    def hindrance(self, row: ActionEntry) -> str:
        """Return why a waiting action may not be handed out yet, "" if it may. Raises StoreError."""
        kind = actions().get(row.kind)
        if not row.rule or kind is None or kind.execution is None or row.status not in WAITING:
            return ""
        notice = self._notices().get(row.id)
        if notice is None:
            return _NOT_YET
        if not notice:
            return ""
        status, _ = self._store.ends([notice]).get(notice, ("not there", ""))
        return "" if status == "confirmed" else f"waits for its warning: action {notice[:_SHOWN]} is {status}"

    def unwarned(self) -> dict[str, str]:
        """Return the actions whose warning mail can no longer be sent, by id, with the reason. Raises StoreError."""
        found = {}
        notices = {id_: one for id_, one in self._notices().items() if one}
        ends = self._store.ends(set(notices.values()))
        for id_, one in notices.items():
            status, reason = ends.get(one, ("not there", ""))
            if status != "confirmed" and status not in _OPEN:
                said = f": {reason}" if reason else ""
                found[id_] = f"its warning was not sent: action {one[:_SHOWN]} is {status}{said}"
        return found

    def _notices(self) -> Mapping[str, str]:
        last = self._pass
        return last.notices if last.begin <= self._store.now() < last.end else {}


def told(
    intent: ActionEntry,
    status: ActionStatus,
    at: int,
    *,
    person: str = "",
    reason: str = "",
    answer: str = "",
    sends: int = 0,
) -> StoredEvent:
    """Return the event of a step; each sending of an action has its own event."""
    data = ActionStep(
        cluster=intent.cluster,
        job_id=intent.job_id,
        start=intent.start,
        subject=intent.subject,
        user=intent.user,
        account=intent.account,
        action=intent.id,
        kind=intent.kind,
        rule=intent.rule,
        rule_hash=intent.rule_hash,
        options=intent.options,
        facts=intent.facts,
        approve=intent.approve,
        expires=intent.expires,
        person=person,
        reason=reason,
        answer=answer,
    )
    return tell(_FAMILY + status, data, at, subject=intent.subject, run=intent.run, unique=f"{intent.id} {sends}")
