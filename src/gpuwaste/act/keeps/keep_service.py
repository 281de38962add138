"""Keeps: which runs are kept now; KeepService: the orders of owners, coordinators and operators, and the list.

A keep names a run by its whole key, so it never covers another job that gets the same id.
"""

import secrets
import threading
from collections.abc import Collection, Iterable, Mapping
from typing import Final, Self

from gpuwaste.act.actions.action_manager import ActionManager
from gpuwaste.act.actions.action_parts import ActionParts
from gpuwaste.act.actions.action_types import ActionEntry
from gpuwaste.act.keeps.keep_budget import KeepBudget
from gpuwaste.act.keeps.keep_store import KeepPick
from gpuwaste.act.keeps.keep_types import (
    MAX_BODY,
    MAX_REASON,
    MAX_RUNS,
    SHORTEST_S,
    KeepAnswer,
    KeepOrder,
    KeepRow,
    KeepsDocument,
    KeepsQuestion,
    KeepTooLate,
)
from gpuwaste.act.keeps.kept_runs import Keeps, instant
from gpuwaste.core.config import Config
from gpuwaste.core.order_body import read_order
from gpuwaste.core.parts import Part, Parts, Reloads
from gpuwaste.core.refusal import BAD, CONFLICT, FORBIDDEN, Refusal, not_found
from gpuwaste.core.scope import ClusterAccount, Scope
from gpuwaste.core.text import words_of
from gpuwaste.core.units import HOUR_S
from gpuwaste.jobs.run_store import runs_named
from gpuwaste.ledger.reports.document_queries import PRINTED_ID
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.store.hub.hub_store import HubStore

_MAY_NOT: Final = "only the owner of the job, a coordinator of its account or an operator may keep it"


class KeepService(Part):
    """For any thread; every method blocks on the store and may raise Refusal or StoreError."""

    def __init__(self, store: HubStore, keeps: Keeps, manager: ActionManager, budget: KeepBudget) -> None:
        self._store = store
        self._keeps = keeps
        self._manager = manager
        self.budget = budget
        self._lock = threading.Lock()  # between reading what is left of a budget and using it

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of a hub."""
        return cls(parts.get(HubStore), parts.get(Keeps), parts.get(ActionParts).manager, budget_of(parts.get(Config)))

    @property
    def reloads(self) -> Reloads:
        """The budget."""

        def put(config: Config) -> None:
            self.budget = budget_of(config)

        return {("hub.keep_hours_per_week", "hub.keep_max_hours", "hub.keeps_per_week"): put}

    def keep(self, scope: Scope, printed_id: str, order: KeepOrder) -> KeepAnswer:
        """Keep the running runs of a job. Raises Refusal: 404 where the caller may not see the job."""
        reason = _reason(order.reason)
        if why := self.budget.too_long(order.seconds):
            raise Refusal(BAD, why)
        with self._lock:
            runs = self._runs(scope, printed_id)
            now = self._keeps.store.now()
            rows = self._rows(runs, scope.user, now, now + order.seconds, reason)
            if not rows:
                until = max(one.until for one in self._active(runs, now).values())
                raise Refusal(CONFLICT, f"job {printed_id} is kept until {instant(until)} already: nothing is changed")
            spent = self._keeps.store.spent(scope.user, now)
            cost_s = sum(row.until - row.since for row in rows)
            if not scope.operator and (why := self.budget.refusal(spent, cost_s, len(rows))):
                raise Refusal(CONFLICT, why)
            return self._stored(scope, printed_id, rows, now)

    def listed(self, scope: Scope, question: KeepsQuestion) -> KeepsDocument:
        """Return keeps: users see those of their jobs, coordinators of their accounts, operators and staff all."""
        other = question.user is not None and question.user != scope.user
        if not scope.everything and (not scope.user or (other and not scope.accounts)):
            raise not_found()
        pick = KeepPick(
            limit=question.limit,
            user=question.user,
            active=None if question.active is None else question.active == "yes",
            reader=None if scope.everything else scope.user,
            accounts=None if scope.everything else scope.accounts,
        )
        return KeepsDocument(generated=self._keeps.store.now(), keeps=self._keeps.store.listed(pick))

    def _runs(self, scope: Scope, printed_id: str) -> list[JobRecord]:
        """Return the runs that the caller may keep: those that run, else those that wait. Raises Refusal."""
        if not scope.user or not PRINTED_ID.fullmatch(printed_id):
            raise not_found()
        accounts = None if scope.everything else scope.accounts
        found = runs_named(self._store, printed_id, accounts=accounts, reader=scope.user)
        if not found:
            raise not_found()
        mine = [run for run in found if _may_keep(scope, run)]
        if not mine:
            raise Refusal(FORBIDDEN, _MAY_NOT)
        still = [run for run in mine if run.end is None]
        runs = [run for run in still if run.start is not None] or still
        if not runs:
            raise Refusal(CONFLICT, f"job {printed_id} has ended: nothing to keep")
        if len(runs) > MAX_RUNS:
            why = f"job {printed_id} has {len(runs)} running tasks, one keep covers {MAX_RUNS} at most"
            raise Refusal(BAD, f"{why}: name a task, such as {runs[0].printed_id}")
        return runs

    def _active(self, runs: Iterable[JobRecord], now: int) -> Mapping[RunKey, KeepRow]:
        return self._keeps.active([run.run_key for run in runs], now)

    def _rows(self, runs: Collection[JobRecord], person: str, now: int, until: int, reason: str) -> list[KeepRow]:
        """Return the keeps to store: of a run that is kept already only the time that is new."""
        active, order = self._active(runs, now), secrets.token_hex(8)
        found = []
        for run in runs:
            key = run.run_key
            before = active.get(key)
            since = now if before is None else before.until
            if since + SHORTEST_S <= until:
                row = KeepRow(
                    id=order, cluster=key.cluster, job_id=key.job_id, start=key.start, printed_id=run.printed_id,
                    user=run.user, account=run.account, asked_by=person, at=now, since=since, until=until,
                    reason=reason,
                )  # fmt: skip
                found.append(row)
        return found

    def _stored(self, scope: Scope, printed_id: str, rows: list[KeepRow], now: int) -> KeepAnswer:
        """Store keeps and drop what waits for these runs, unless an action was sent before. Raises Refusal."""
        by_run = {row.run: row for row in rows}
        late, stopped = self._manager.hold_back(
            list(by_run), lambda free: self._keeps.store.add([by_run[run] for run in free])
        )
        kept = [row for row in rows if row.run not in {one.run for one in late}]
        if not kept:
            sent = ", ".join(f"{one.kind} was sent at {instant(one.sent or one.since)}" for one in late[:3])
            raise Refusal(CONFLICT, f"too late: job {printed_id}: {sent}; no keep is recorded")
        spent = self._keeps.store.spent(scope.user, now)
        return KeepAnswer(
            generated=now,
            keeps=kept,
            stopped=stopped,
            too_late=[_too_late(one, by_run) for one in late],
            left_h=None if scope.operator else self.budget.left_s(spent) / HOUR_S,
            left_keeps=None if scope.operator else self.budget.left_keeps(spent),
        )


def order_of(body: bytes) -> KeepOrder:
    """Return the order in a request's body. Raises Refusal."""
    return read_order(body, KeepOrder, MAX_BODY, what="the keep", hint=f"reason has {MAX_REASON} characters")


def budget_of(config: Config) -> KeepBudget:
    """Return the site's budget."""
    return KeepBudget(config.hub.keep_hours_per_week, config.hub.keep_max_hours, config.hub.keeps_per_week)


def _reason(text: str) -> str:
    if len(text) > MAX_REASON:
        raise Refusal(BAD, f"reason: {len(text)} characters, {MAX_REASON} at most")
    found = words_of(text, MAX_REASON)
    if not found:
        raise Refusal(BAD, "reason: empty: write in a sentence why the job is needed")
    return found


def _may_keep(scope: Scope, run: JobRecord) -> bool:
    return scope.operator or run.user == scope.user or ClusterAccount(run.cluster, run.account) in scope.accounts


def _too_late(row: ActionEntry, by_run: Mapping[RunKey, KeepRow]) -> KeepTooLate:
    printed = next((keep.printed_id for run, keep in by_run.items() if run == row.run), "")
    return KeepTooLate(printed_id=printed, action=row.kind, sent=row.sent)
