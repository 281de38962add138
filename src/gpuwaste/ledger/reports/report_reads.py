"""ReportReads: reports within a caller's scope, of the runs that are judged together where there are many."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Final

import msgspec

from gpuwaste.core.clock import Clock
from gpuwaste.core.refusal import BAD, Refusal, not_found
from gpuwaste.core.request_coalescer import RequestCoalescer
from gpuwaste.core.response_cache import ResponseCache
from gpuwaste.core.scope import ClusterAccount, Scope
from gpuwaste.core.typed import decode
from gpuwaste.core.units import DAY_S, HOUR_S
from gpuwaste.ledger.energy.drawn import DrawnBy
from gpuwaste.ledger.ledger_settings import LedgerSettings
from gpuwaste.ledger.open_run_snapshot import OpenRunSnapshot, OutdatedError, Window
from gpuwaste.ledger.reports.past_totals import PastTotals
from gpuwaste.ledger.reports.report import Clusters, ReportLines, report_document, report_totals, user_reports
from gpuwaste.ledger.reports.report_question import ALL_CLUSTERS, MAX_ROWS, ReportQuestion
from gpuwaste.ledger.reports.report_types import GpuTime, ReportDocument
from gpuwaste.ledger.reports.report_types import Scope as ReportScope
from gpuwaste.ledger.shared_runs import OLD_S, SharedRuns
from gpuwaste.store.hub.hub_store import HubStore

MAX_CLUSTERS: Final = 32
_DAYS: Final = 7
_BEFORE_S: Final = 600.0
_PAST_S: Final = 14 * DAY_S  # to add up all users for longer takes too long for a lone reader
_BEFORE_B: Final = 4 << 20
_KEPT_ROWS: Final = 1000  # of larger reports none is kept
_KEPT_B: Final = 8 << 20


@dataclass(frozen=True, slots=True)
class ReportSubject:
    """Whose jobs a report is of, the accounts that a coordinator's view is kept to, and the clusters asked for."""

    kind: ReportScope
    name: str
    accounts: frozenset[ClusterAccount] | None
    clusters: Clusters | None = None

    def drawn_by(self) -> DrawnBy:
        """Return the same runs as those whose energy is asked for."""
        names = None if self.clusters is None else self.clusters.names
        if self.kind == "cluster":
            return DrawnBy(clusters=(self.name,) if self.name and self.clusters is None else names)
        whose = {self.kind: self.name}
        return DrawnBy(accounts=self.accounts, clusters=names, user=whose.get("user"), account=whose.get("account"))


class ReportReads:
    """Builds reports; for any thread."""

    def __init__(
        self,
        store: HubStore,
        settings: LedgerSettings,
        clock: Clock,
        shared: SharedRuns | None,
        turns: AbstractContextManager[object],
    ) -> None:
        """Take what judges open runs for all readers; without it each document judges its own.

        `turns` is held while the store is asked for a report.
        """
        self._store = store
        self._settings = settings
        self._clock = clock
        self._shared = shared
        self._before = ResponseCache(clock, _BEFORE_B)
        self._past = PastTotals(store, clock, _BEFORE_S)
        self._users: RequestCoalescer[str, ReportDocument] = RequestCoalescer()
        self._turns = turns
        self._reports = ResponseCache(clock, _KEPT_B)

    def judge_by(self, settings: LedgerSettings) -> None:
        """Use other thresholds from the next document on; for any thread."""
        self._settings = settings

    def report(self, scope: Scope, question: ReportQuestion) -> ReportDocument:
        """Return a report. Raises Refusal: 404 alike for what is not there and what is not the caller's to see."""
        subject = report_subject(scope, question)
        window = self._window(question)
        document = self._of_kept(subject, question, window)
        if document is None:
            document = self._report(subject, question, window, None)
        if subject.kind == "user" and subject.accounts is not None and not document.job_count:
            raise not_found()
        return document

    def totals_before(self, scope: Scope, question: ReportQuestion, start: int, length_s: int) -> GpuTime | None:
        """Return the totals of so much time before a window, by whole hours; None before the first of all times.

        They are kept for a while: each page of a table would ask for them anew. Raises Refusal.
        """
        subject, settings = report_subject(scope, question), self._settings
        until = start - start % HOUR_S
        window = until - length_s, until
        if window[0] < 0 or not length_s:
            return None

        def totals() -> bytes:
            try:
                found = self._totals(subject, window, self._kept(window))
            except OutdatedError:
                found = self._totals(subject, window, None)
            return msgspec.json.encode(found)

        past = self._past_totals(subject, window)
        if past is not None:
            return past
        key = (subject, window, settings.to_text())
        return decode(self._before.made(key, _BEFORE_S, totals), GpuTime)

    def _past_totals(self, subject: ReportSubject, window: tuple[int, int]) -> GpuTime | None:
        """Return the totals that are added up for all users at once: where parts of runs are kept for the window."""
        kept = self._kept(window)
        if kept is None or window not in kept.windows or subject.kind == "cluster" or window[1] - window[0] > _PAST_S:
            return None
        if subject.clusters is not None and subject.clusters.names is not None:
            return None
        user, account = (subject.name, None) if subject.kind == "user" else (None, subject.name)
        try:
            return self._past.of(window, self._settings, kept, user=user, account=account, accounts=subject.accounts)
        except OutdatedError:
            return None

    def _window(self, question: ReportQuestion) -> Window:
        """Return from when to when. Raises Refusal."""
        end = self._now() if question.end is None else question.end
        start = days_before(end, _DAYS) if question.start is None else question.start
        if start > end:
            raise Refusal(BAD, f"start {start} is after end {end}")
        return start, question.end

    def _kept(self, window: Window) -> OpenRunSnapshot | None:
        """Return what was judged together; others are likely to ask for a window of UTC days, too.

        Of a page come the totals of as many days before, next: their parts are made with those of its own window.
        """
        if self._shared is None:
            return None
        start, end = window
        if start % DAY_S or (end is not None and end % DAY_S):
            return self._shared.current()
        now = self._now()
        before = max(0, start - (now - now % DAY_S - start)), start
        return self._shared.current(*((before, window) if end is None and before[0] < start else (window,)))

    def _of_kept(self, subject: ReportSubject, question: ReportQuestion, window: Window) -> ReportDocument | None:
        """Return the report as of the instant at which runs were judged together; None where that does not serve."""
        kept = self._kept(window)
        if kept is None:
            return None
        try:
            if question.limit is None or question.limit > _KEPT_ROWS:
                return self._report(subject, question, window, kept)
            key = (subject, question, window, kept.now, kept.thresholds)
            body = self._reports.made(
                key, OLD_S, lambda: msgspec.json.encode(self._among_users(subject, question, window, kept))
            )
        except OutdatedError:
            return None
        return decode(body, ReportDocument)

    def _among_users(
        self, subject: ReportSubject, question: ReportQuestion, window: Window, kept: OpenRunSnapshot
    ) -> ReportDocument:
        """Return a report; those of users that are asked for while another is made are made together, next."""
        found = None
        every = subject.clusters is None or subject.clusters.names is None
        if subject.kind == "user" and every and subject.accounts is None and question.lines.name is None:

            def answer(users: Sequence[str]) -> Mapping[str, ReportDocument]:
                return self._of_users(users, question, window, kept)

            kind = (window, replace(question, user=None), kept.now, kept.thresholds)
            found = self._users.ask(kind, subject.name, answer)
        return self._report(subject, question, window, kept) if found is None else found

    def _of_users(
        self, users: Sequence[str], question: ReportQuestion, window: Window, kept: OpenRunSnapshot
    ) -> Mapping[str, ReportDocument]:
        """Return the reports of some users; one alone is found sooner by their name."""
        if len(users) == 1:
            subject = ReportSubject("user", users[0], None, _rows_of(question))
            return {users[0]: self._report(subject, question, window, kept)}
        if window not in kept.windows:
            return {}
        start, end = window
        rows = None if _rows_of(question) is None else ()
        asked = ReportLines(question.limit, question.offset, question.lines, rows)
        with self._turns, self._store.reader() as db:
            until = kept.now if end is None else end
            return user_reports(db, users, (min(start, until), until), self._settings, kept, asked=asked)

    def _report(
        self, subject: ReportSubject, question: ReportQuestion, window: Window, kept: OpenRunSnapshot | None
    ) -> ReportDocument:
        now = self._now() if kept is None else kept.now
        start, end = window
        if end is None:
            start, end = min(start, now), now
        limit = MAX_ROWS if question.limit is None else min(question.limit, MAX_ROWS)
        with self._turns, self._store.reader() as db:
            return report_document(
                db, subject.kind, subject.name, start, end, self._settings, now,
                accounts=subject.accounts, clusters=subject.clusters, limit=limit, offset=question.offset,
                lines=question.lines, kept=kept,
            )  # fmt: skip

    def _totals(self, subject: ReportSubject, window: tuple[int, int], kept: OpenRunSnapshot | None) -> GpuTime:
        now = self._now() if kept is None else kept.now
        with self._turns, self._store.reader() as db:
            return report_totals(
                db, subject.kind, subject.name, *window, self._settings, now, accounts=subject.accounts,
                clusters=subject.clusters, kept=kept,
            )  # fmt: skip

    def _now(self) -> int:
        return self._clock.utc_us() // 1_000_000


def days_before(now: int, days: int) -> int:
    """Return the beginning of the UTC day so many days before today: from there on are so many days, and today."""
    return max(0, now - now % DAY_S - days * DAY_S)


def report_subject(scope: Scope, question: ReportQuestion) -> ReportSubject:
    """Return what is asked for, within what the caller may ask for. Raises Refusal."""
    if question.user is not None and question.account is not None:
        raise Refusal(BAD, "give one of user and account")
    clusters = _rows_of(question)
    if question.cluster is not None and question.user is None and question.account is None:
        if not scope.everything:
            raise not_found()
        names = () if clusters is None else clusters.names or ()
        alone = len(names) == 1 or clusters is None
        return ReportSubject("cluster", ",".join(names), None, None if alone else clusters)
    if question.account is not None:
        accounts = None if scope.everything else scope.accounts_named(question.account)
        if accounts is not None and not accounts:
            raise not_found()
        return ReportSubject("account", question.account, accounts, clusters)
    name = scope.user if question.user is None else question.user
    if not name or not (scope.everything or name == scope.user or scope.accounts):
        raise not_found()
    accounts = None if scope.everything or name == scope.user else scope.accounts
    return ReportSubject("user", name, accounts, clusters)


def _rows_of(question: ReportQuestion) -> Clusters | None:
    """Return what is asked of clusters by a report on a user, which may be a row for each."""
    return None if question.cluster is None else asked_clusters(question.cluster)


def asked_clusters(text: str) -> Clusters | None:
    """Return the clusters that a text names, as Slurm's -M: names separated by commas, or "all".

    None is every cluster without a row for each, which is what "1" has always meant. Raises Refusal.
    """
    if text in {"1", ALL_CLUSTERS}:
        return None if text == "1" else Clusters()
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
    if "" in names:
        raise Refusal(BAD, f"cluster={text[:40]!r}: expected names separated by commas, or {ALL_CLUSTERS}")
    if len(names) > MAX_CLUSTERS:
        raise Refusal(BAD, f"cluster: {len(names)} names, {MAX_CLUSTERS} at most: use {ALL_CLUSTERS}")
    return Clusters(names)
