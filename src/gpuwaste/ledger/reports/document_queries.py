"""The answers of the GET routes: scope first, then the document. Blocks on the store: call it off the event loop."""

import re
import threading
from collections.abc import Iterable
from typing import Final, Self

from msgspec.structs import replace

from gpuwaste.core.clock import Clock
from gpuwaste.core.parts import Part, Parts
from gpuwaste.core.refusal import not_found
from gpuwaste.core.response_cache import RequestCoalescer, ResponseCache
from gpuwaste.core.scope import ClusterAccount, Scope
from gpuwaste.core.site_config import EnergyConfig
from gpuwaste.core.thread_pool import REPORTS_AT_ONCE
from gpuwaste.core.units import HOUR_S
from gpuwaste.core.worker import Bus
from gpuwaste.jobs.host_ports import HostPorts
from gpuwaste.jobs.run_store import clusters, pick_named
from gpuwaste.ledger.energy.energy_reads import EnergyReads, job_with_energy
from gpuwaste.ledger.energy.site_tariff import SiteTariff
from gpuwaste.ledger.judging import Judging
from gpuwaste.ledger.ledger import LedgerSettings
from gpuwaste.ledger.open_runs import SharedRuns
from gpuwaste.ledger.reports.job_document import neighbours_of, picked_job_document
from gpuwaste.ledger.reports.job_types import JobDocument
from gpuwaste.ledger.reports.report_builder import top_document
from gpuwaste.ledger.reports.report_question import ANY, JobQuestion, ReportQuestion
from gpuwaste.ledger.reports.report_reads import ReportReads, report_subject
from gpuwaste.ledger.reports.report_types import GpuTime, ReportDocument, TopDocument
from gpuwaste.ledger.run_advice import RunAdvice
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.store.database import Database
from gpuwaste.store.hub.hub_store import HubStore

_FACTS_S: Final = 60.0
PRINTED_ID: Final = re.compile(r"[0-9]{1,10}(?:[_+][0-9]{1,10})?", re.ASCII)


class DocumentQueries(Part):
    """Builds documents within a caller's scope."""

    def __init__(
        self,
        store: HubStore,
        settings: LedgerSettings,
        clock: Clock,
        shared: SharedRuns | None = None,
        tariff: SiteTariff | None = None,
        *,
        said: RunAdvice | None = None,
    ) -> None:
        """Set up; `shared` judges open runs for all readers, without it each document judges its own.

        Without a tariff documents have kilowatt-hours and no costs, without `said` no advice or predictions.
        """
        self.tariff = tariff or SiteTariff(EnergyConfig(), clock)
        self._said = said or RunAdvice()
        self._store = store
        self._settings = settings
        self._clock = clock
        self._turns = threading.BoundedSemaphore(REPORTS_AT_ONCE)
        self._reports = ReportReads(store, settings, clock, shared, self._turns)
        self._energy = EnergyReads(store, self.tariff, clock, self._turns)
        self._jobs: RequestCoalescer[str, JobDocument] = RequestCoalescer()
        self._facts = ResponseCache(clock)

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of a hub."""
        clock = parts.get(HostPorts).clock
        store, ledger = parts.get(HubStore), parts.get(Judging).standing
        part = cls(store, ledger, clock, parts.get(SharedRuns), parts.get(SiteTariff), said=parts.get(RunAdvice))
        parts.get(Bus).subscribe(LedgerSettings, part.judge_by)
        return part

    def judge_by(self, settings: LedgerSettings) -> None:
        """Use other thresholds from the next document on. Thread-safe."""
        self._settings = settings
        self._reports.judge_by(settings)

    def report(self, scope: Scope, question: ReportQuestion) -> ReportDocument:
        """Return a report. Raises Refusal: 404 both for what does not exist and for what the caller may not see."""
        document = self._reports.report(scope, question)
        return self._energy.with_costs(document, report_subject(scope, question).drawn_by())

    def several_clusters(self) -> bool:
        """Return whether the store has runs of more than one cluster; the result is cached for a minute."""
        with self._facts.turn("clusters"):
            kept = self._facts.get("clusters")
            if kept is None:
                with self._store.reader() as db:
                    kept = b"several" if len(clusters(db)) > 1 else b""
                self._facts.keep("clusters", kept, _FACTS_S)
            return bool(kept)

    def totals_before(self, scope: Scope, question: ReportQuestion, start: int, length_s: int) -> GpuTime | None:
        """Return the totals of `length_s` seconds before a window, by full hours; None if they begin before time 0."""
        return self._reports.totals_before(scope, question, start, length_s)

    def job(self, scope: Scope, printed_id: str, question: JobQuestion = ANY, *, hours: bool = False) -> JobDocument:
        """Return the requested runs of a job that the caller may see, with the advice at submission.

        With `hours` it has the use of each GPU over time, and the jobs that shared nodes with the newest run. Identical
        requests that arrive while one is answered share one answer, which is made after they arrived.
        """
        with self._jobs.turn((scope, printed_id, question, hours), printed_id) as turn:
            if turn.questions:
                turn.answers = {printed_id: self._job(scope, printed_id, question, hours)}
        return self._job(scope, printed_id, question, hours) if turn.answer is None else turn.answer

    def _job(self, scope: Scope, printed_id: str, question: JobQuestion, hours: bool) -> JobDocument:
        seen = _seen_by(scope, question)
        accounts, reader = _readable(seen)
        with self._turns, self._store.reader() as db:
            runs = _named(db, seen, printed_id, question)
            keys = {run.run_key for run in runs}
            document = picked_job_document(db, printed_id, self._settings, self.now(), keys=keys, hours=hours)
            if document is not None:
                document = job_with_energy(db, document, self.tariff.current())
            newest = max((run for run in runs if run.start is not None), key=_started, default=None)
            beside = None
            if hours and newest is not None:
                beside = neighbours_of(db, newest, self.now(), accounts=accounts, reader=reader)
        if document is None:
            raise not_found()
        again = self._said.again(keys)
        return replace(document, neighbours=beside, advice=self._said.advice(seen, runs), said_again=again)

    def runs(self, scope: Scope, printed_id: str, question: JobQuestion = ANY) -> list[JobRecord]:
        """Return the requested runs of a job that the caller may see. Raises Refusal 404 for none."""
        with self._store.reader() as db:
            return _named(db, _seen_by(scope, question), printed_id, question)

    def top(self, scope: Scope, since: int | None, limit: int | None) -> TopDocument:
        """Return who is wasting GPUs now, of the runs that the caller may see."""
        now = self.now()
        accounts = None if scope.everything else scope.accounts
        with self._store.reader() as db:
            return top_document(
                db, now - HOUR_S if since is None else since, self._settings, now,
                accounts=accounts, reader=scope.user or None, limit=limit,
            )  # fmt: skip

    def now(self) -> int:
        """Return UTC seconds."""
        return self._clock.utc_s()


def _named(db: Database, seen: Scope, printed_id: str, question: JobQuestion) -> list[JobRecord]:
    """Pick the runs of an id within a view; return the requested ones. Raises Refusal 404 for none."""
    if not PRINTED_ID.fullmatch(printed_id):
        raise not_found()
    accounts, reader = _readable(seen)
    runs = picked_runs(pick_named(db, printed_id, accounts=accounts, reader=reader), question)
    if not runs:
        raise not_found()
    return runs


def _started(run: JobRecord) -> int:
    return run.start or 0


def _seen_by(scope: Scope, question: JobQuestion) -> Scope:
    """Return the view for a question: that of its owner if given."""
    return scope if question.owner is None else scope.seen_by(question.owner)


def _readable(scope: Scope) -> tuple[frozenset[ClusterAccount] | None, str | None]:
    """Return the accounts (None: all) and the user whose runs are in a scope."""
    return None if scope.everything else scope.accounts, scope.user or None


def picked_runs(runs: Iterable[JobRecord], question: JobQuestion) -> list[JobRecord]:
    """Return the runs that match a question, of all runs of a printed id."""
    found = [
        run
        for run in runs
        if question.cluster in {None, run.cluster} and (question.start is None or run.start == question.start)
    ]
    return found if question.ended_since is None else _last(found, question.ended_since)


def _last(runs: list[JobRecord], since: int) -> list[JobRecord]:
    """Return the last run of each task, of the submission that had a run not ended at `since`.

    Slurm uses an id again only after all runs of the earlier submission have ended.
    """
    chosen = [run for run in runs if _open_at(run, since)]
    while chosen:
        submit = min(run.submit for run in chosen)
        more = [run for run in runs if _open_at(run, submit)]
        if len(more) == len(chosen):
            break
        chosen = more
    last: dict[tuple[str, int], JobRecord] = {}
    for run in sorted(chosen, key=lambda run: (run.submit, run.start or 0)):
        last[run.cluster, run.job_id] = run
    return list(last.values())


def _open_at(run: JobRecord, at: int) -> bool:
    return run.end is None or run.end >= at
