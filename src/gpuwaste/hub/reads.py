"""What the GET routes answer: scope first, then the document. Blocks on the store: call it off the event loop."""

import re
from dataclasses import asdict, dataclass
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from gpuwaste.core.clock import Clock
from gpuwaste.core.job import JobRecord
from gpuwaste.core.units import DAY_S, HOUR_S
from gpuwaste.documents.neighbours import neighbours_of
from gpuwaste.documents.report import job_document, report_document, report_totals, top_document
from gpuwaste.documents.report_types import GpuTime, JobDocument, ReportDocument, TopDocument
from gpuwaste.documents.report_types import Scope as ReportScope
from gpuwaste.hub.kept_answers import KeptAnswers
from gpuwaste.hub.refusal import BAD, FORBIDDEN, Refusal, not_found
from gpuwaste.hub.roles import Scope
from gpuwaste.hub.run_choice import ANY, JobQuestion, picked_runs
from gpuwaste.hub.verdict_reads import VerdictReads
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.store.hub.verdict_store import VerdictStore
from gpuwaste.waste.judged_runs import EVERY_LINE, LineFilter
from gpuwaste.waste.ledger_settings import LedgerSettings

MAX_HISTORY: Final = 10_000
MAX_ROWS: Final = 20_000  # of a report's job table and findings: what is beyond is counted
PRINTED_ID: Final = re.compile(r"[0-9]{1,10}(?:[_+][0-9]{1,10})?", re.ASCII)
_REPORT_DAYS: Final = 7
_BEFORE_S: Final = 600.0
_BEFORE_B: Final = 4 << 20


@dataclass(frozen=True, slots=True)
class ReportQuestion:
    """The parameters of GET /v1/report; exactly one of user, account and cluster, or none for the caller's own."""

    user: str | None = None
    account: str | None = None
    cluster: str | None = None
    start: int | None = None
    end: int | None = None
    limit: int | None = None
    offset: int = 0
    lines: LineFilter = EVERY_LINE


class Reads:
    """Builds documents within a caller's scope."""

    def __init__(self, store: HubStore, settings: LedgerSettings, clock: Clock) -> None:
        self._verdicts = VerdictReads(VerdictStore(store, clock), clock)
        self._store = store
        self._settings = settings
        self._clock = clock
        self._before = KeptAnswers(clock, _BEFORE_B)

    def judge_by(self, settings: LedgerSettings) -> None:
        """Use other thresholds from the next document on; for any thread."""
        self._settings = settings

    def report(self, scope: Scope, question: ReportQuestion) -> ReportDocument:
        """Return a report. Raises Refusal: 404 alike for what is not there and what is not the caller's to see."""
        kind, name = _subject(scope, question)
        now = self.now()
        end = now if question.end is None else question.end
        start = end - _REPORT_DAYS * DAY_S if question.start is None else question.start
        if start > end:
            raise Refusal(BAD, f"start {start} is after end {end}")
        accounts = _accounts(scope, kind, name)
        limit = MAX_ROWS if question.limit is None else min(question.limit, MAX_ROWS)
        with self._store.reader() as db:
            document = report_document(
                db, kind, name, start, end, self._settings, now,
                accounts=accounts, limit=limit, offset=question.offset, lines=question.lines,
            )  # fmt: skip
        if accounts is not None and not document.job_count:
            raise not_found()
        return document

    def totals_before(self, scope: Scope, question: ReportQuestion, start: int, end: int) -> GpuTime | None:
        """Return the totals of as much time before a window, by whole hours; None before the first of all times.

        They are kept for a while: each page of a table would ask for them anew. Raises Refusal.
        """
        kind, name = _subject(scope, question)
        until = start - start % HOUR_S
        since = until - (end - start)
        if since < 0 or since == until:
            return None
        accounts, settings = _accounts(scope, kind, name), self._settings
        key = (kind, name, accounts, since, until, settings.to_text())

        def totals() -> bytes:
            with self._store.reader() as db:
                found = report_totals(db, kind, name, since, until, settings, self.now(), accounts=accounts)
            return msgspec.json.encode(found)

        return msgspec.json.decode(self._before.made(key, _BEFORE_S, totals), type=GpuTime)

    def job(self, scope: Scope, printed_id: str, question: JobQuestion = ANY, *, hours: bool = False) -> JobDocument:
        """Return the runs of a job that are asked for and that the caller may see, with what was said at submission.

        With `hours` it has what each GPU did over time, and the jobs that ran beside the newest run.
        """
        runs = self.runs(scope, printed_id, question)
        scope = _seen_by(scope, question)
        accounts, reader = _readable(scope)
        keys = {run.run_key for run in runs}
        with self._store.reader() as db:
            document = job_document(
                db, printed_id, self._settings, self.now(), accounts=accounts, reader=reader, keys=keys, hours=hours
            )
            newest = max((run for run in runs if run.start is not None), key=_started, default=None)
            beside = None
            if hours and newest is not None:
                beside = neighbours_of(db, newest, self.now(), accounts=accounts, reader=reader)
        if document is None:
            raise not_found()
        return replace(document, neighbours=beside, advice=self._verdicts.advice(scope, runs))

    def runs(self, scope: Scope, printed_id: str, question: JobQuestion = ANY) -> list[JobRecord]:
        """Return the runs of a job that are asked for and that the caller may see. Raises Refusal 404 for none."""
        if not PRINTED_ID.fullmatch(printed_id):
            raise not_found()
        accounts, reader = _readable(_seen_by(scope, question))
        runs = picked_runs(self._store.runs_named(printed_id, accounts=accounts, reader=reader), question)
        if not runs:
            raise not_found()
        return runs

    def top(self, scope: Scope, since: int | None, limit: int | None) -> TopDocument:
        """Return who wastes now, among the runs that the caller may see."""
        now = self.now()
        accounts = None if scope.everything else scope.accounts
        with self._store.reader() as db:
            return top_document(
                db, now - HOUR_S if since is None else since, self._settings, now,
                accounts=accounts, reader=scope.user or None, limit=limit,
            )  # fmt: skip

    def history(self, scope: Scope, after: int, limit: int) -> dict[str, Any]:
        """Return events for the advisor and for training."""
        if not (scope.everything or scope.agent):
            raise Refusal(FORBIDDEN, "the history is for operators")
        events = self._store.history(after, min(limit, MAX_HISTORY))
        following = events[-1].seq if events else after
        counted = asdict(self._store.under_use)
        return {"events": [event.to_json() for event in events], "next": following, "under_use": counted}

    def now(self) -> int:
        """Return UTC seconds."""
        return self._clock.utc_us() // 1_000_000


def _started(run: JobRecord) -> int:
    return run.start or 0


def _seen_by(scope: Scope, question: JobQuestion) -> Scope:
    """Return the view that a question is asked with."""
    return scope if question.owner is None else scope.seen_by(question.owner)


def _readable(scope: Scope) -> tuple[frozenset[str] | None, str | None]:
    """Return the accounts, None for all, and the user whose runs a scope has."""
    return None if scope.everything else scope.accounts, scope.user or None


def _subject(scope: Scope, question: ReportQuestion) -> tuple[ReportScope, str]:
    """Return what is asked for, within what the caller may ask for."""
    given = [n for n in (question.user, question.account, question.cluster) if n is not None]
    if len(given) > 1:
        raise Refusal(BAD, "give one of user, account and cluster")
    if question.cluster is not None:
        if not scope.everything:
            raise not_found()
        return "cluster", "" if question.cluster == "1" else question.cluster
    if question.account is not None:
        if not (scope.everything or question.account in scope.accounts):
            raise not_found()
        return "account", question.account
    name = scope.user if question.user is None else question.user
    if not name or not (scope.everything or name == scope.user or scope.accounts):
        raise not_found()
    return "user", name


def _accounts(scope: Scope, kind: ReportScope, name: str) -> frozenset[str] | None:
    """Return the accounts to which a coordinator's view of another user is kept; None for the whole view."""
    if scope.everything or kind != "user" or name == scope.user:
        return None
    return scope.accounts
