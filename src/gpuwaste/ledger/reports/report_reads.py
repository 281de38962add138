"""ReportReads: reports within a caller's scope, from the shared snapshot of open runs where there are many."""

import threading
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from typing import Final

import msgspec

from gpuwaste.core.clock import Clock
from gpuwaste.core.refusal import BAD, Refusal, not_found
from gpuwaste.core.response_cache import RequestCoalescer, ResponseCache
from gpuwaste.core.scope import ClusterAccount, Scope
from gpuwaste.core.typed import decode
from gpuwaste.core.units import DAY_S, HOUR_S
from gpuwaste.ledger.energy.priced_energy import DrawnBy
from gpuwaste.ledger.ledger import LedgerSettings
from gpuwaste.ledger.open_runs import OLD_S, OpenRunSnapshot, OutdatedError, SharedRuns, Window
from gpuwaste.ledger.reports.report_builder import (
    Clusters,
    ReportLines,
    Tallies,
    report_document,
    report_totals,
    totals_by_account,
    user_reports,
)
from gpuwaste.ledger.reports.report_question import ALL_CLUSTERS, MAX_ROWS, ReportQuestion
from gpuwaste.ledger.reports.report_types import GpuTime, ReportDocument
from gpuwaste.ledger.reports.report_types import Scope as ReportScope
from gpuwaste.ledger.tally import Tally
from gpuwaste.store.hub.hub_store import HubStore

MAX_CLUSTERS: Final = 32
_DAYS: Final = 7
_BEFORE_S: Final = 600.0
_PAST_WINDOWS: Final = 8
_PAST_S: Final = 14 * DAY_S  # adding up all users for a longer time takes too long for a single reader
_BEFORE_B: Final = 4 << 20
_KEPT_ROWS: Final = 1000  # larger reports are not cached
_KEPT_B: Final = 8 << 20


@dataclass(frozen=True, slots=True)
class ReportSubject:
    """Whose jobs a report covers, the accounts that limit a coordinator's view, and the requested clusters."""

    kind: ReportScope
    name: str
    accounts: frozenset[ClusterAccount] | None
    clusters: Clusters | None = None

    @property
    def every_cluster(self) -> bool:
        """Whether it covers the runs of all clusters."""
        return self.clusters is None or self.clusters.names is None

    def drawn_by(self) -> DrawnBy:
        """Return the same runs as parameters for the energy queries."""
        names = None if self.clusters is None else self.clusters.names
        if self.kind == "cluster":
            return DrawnBy(clusters=(self.name,) if self.name and self.clusters is None else names)
        whose = {self.kind: self.name}
        return DrawnBy(accounts=self.accounts, clusters=names, user=whose.get("user"), account=whose.get("account"))


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question, its subject and its window."""

    subject: ReportSubject
    question: ReportQuestion
    window: Window

    @property
    def of_a_user(self) -> bool:
        """Whether it can be answered together with those of other users: all clusters and accounts, any job name."""
        subject = self.subject
        every = subject.every_cluster and subject.accounts is None and self.question.lines.name is None
        return subject.kind == "user" and every


@dataclass(frozen=True, slots=True)
class _PastTotals:
    """The sums of each user and account in a past window, and until when they are cached."""

    tallies: Tallies
    until_us: int


class ReportReads:
    """Builds reports. Thread-safe."""

    def __init__(
        self,
        store: HubStore,
        settings: LedgerSettings,
        clock: Clock,
        shared: SharedRuns | None,
        turns: AbstractContextManager[object],
    ) -> None:
        """Set up; `shared` judges open runs for all readers, without it each document judges its own.

        `turns` is held during the queries for a report.
        """
        self._store = store
        self._settings = settings
        self._clock = clock
        self._shared = shared
        self._before = ResponseCache(clock, _BEFORE_B)
        self._past: dict[tuple[Window, str], _PastTotals] = {}
        self._adding = threading.Lock()
        self._users: RequestCoalescer[str, ReportDocument] = RequestCoalescer()
        self._turns = turns
        self._reports = ResponseCache(clock, _KEPT_B)

    def judge_by(self, settings: LedgerSettings) -> None:
        """Use other thresholds from the next document on. Thread-safe."""
        self._settings = settings

    def report(self, scope: Scope, question: ReportQuestion) -> ReportDocument:
        """Return a report. Raises Refusal: 404 both for what does not exist and for what the caller may not see."""
        asked = _Asked(report_subject(scope, question), question, self._window(question))
        kept, document = self._kept(asked.window), None
        if kept is not None:
            with suppress(OutdatedError):
                document = self._of_kept(asked, kept)
        if document is None:
            document = self._report(asked, None)
        if asked.subject.kind == "user" and asked.subject.accounts is not None and not document.job_count:
            raise not_found()
        return document

    def totals_before(self, scope: Scope, question: ReportQuestion, start: int, length_s: int) -> GpuTime | None:
        """Return the totals of `length_s` seconds before a window, by full hours; None if they begin before time 0.

        They are cached for a while, since each page of a table needs them again. Raises Refusal.
        """
        subject, settings = report_subject(scope, question), self._settings
        until = start - start % HOUR_S
        window = until - length_s, until
        if window[0] < 0 or not length_s:
            return None
        kept = self._kept(window)
        if kept is not None and self._is_past(subject, window, kept):
            with suppress(OutdatedError):
                return self._past_totals(subject, window, kept)
        key = (subject, window, settings.to_text())
        with self._before.turn(key):
            body = self._before.get(key)
            if body is None:
                body = msgspec.json.encode(self._totals(subject, window, kept))
                self._before.keep(key, body, _BEFORE_S)
            return decode(body, GpuTime)

    def _window(self, question: ReportQuestion) -> Window:
        """Return the window of a question. Raises Refusal."""
        end = self._clock.utc_s() if question.end is None else question.end
        start = days_before(end, _DAYS) if question.start is None else question.start
        if start > end:
            raise Refusal(BAD, f"start {start} is after end {end}")
        return start, question.end

    def _kept(self, window: Window) -> OpenRunSnapshot | None:
        """Return the shared snapshot; only windows of UTC days are likely to be requested again, and get parts in it.

        A page next requests the totals of as many days before: their parts are made with those of its own window.
        """
        if self._shared is None:
            return None
        start, end = window
        if start % DAY_S or (end is not None and end % DAY_S):
            return self._shared.current()
        now = self._clock.utc_s()
        before = max(0, start - (now - now % DAY_S - start)), start
        return self._shared.current(*((before, window) if end is None and before[0] < start else (window,)))

    def _of_kept(self, asked: _Asked, kept: OpenRunSnapshot) -> ReportDocument:
        """Return the report as of the instant of the snapshot. Raises OutdatedError."""
        if asked.question.limit is None or asked.question.limit > _KEPT_ROWS:
            return self._report(asked, kept)
        key = (asked, kept.now, kept.thresholds)
        with self._reports.turn(key):
            body = self._reports.get(key)
            if body is None:
                body = msgspec.json.encode(self._among_users(asked, kept))
                self._reports.keep(key, body, OLD_S)
            return decode(body, ReportDocument)

    def _among_users(self, asked: _Asked, kept: OpenRunSnapshot) -> ReportDocument:
        """Return a report; reports of users that are requested while one is made are then made together."""
        if not asked.of_a_user:
            return self._report(asked, kept)
        kind = (asked.window, replace(asked.question, user=None), kept.now, kept.thresholds)
        with self._users.turn(kind, asked.subject.name) as turn:
            if len(turn.questions) == 1:  # a query by name is faster
                return self._report(asked, kept)
            if turn.questions and asked.window in kept.windows:
                turn.answers = self._of_users(turn.questions, asked, kept)
        return self._report(asked, kept) if turn.answer is None else turn.answer

    def _of_users(self, users: Sequence[str], asked: _Asked, kept: OpenRunSnapshot) -> Mapping[str, ReportDocument]:
        """Return the reports of some users."""
        start, end = asked.window
        until = kept.now if end is None else end
        question = asked.question
        rows = None if asked.subject.clusters is None else ()
        lines = ReportLines(question.limit, question.offset, question.lines, rows)
        with self._turns, self._store.reader() as db:
            return user_reports(db, users, (min(start, until), until), self._settings, kept, asked=lines)

    def _report(self, asked: _Asked, kept: OpenRunSnapshot | None) -> ReportDocument:
        now = self._clock.utc_s() if kept is None else kept.now
        start, end = asked.window
        if end is None:
            start, end = min(start, now), now
        subject, question = asked.subject, asked.question
        limit = MAX_ROWS if question.limit is None else min(question.limit, MAX_ROWS)
        with self._turns, self._store.reader() as db:
            return report_document(
                db, subject.kind, subject.name, start, end, self._settings, now,
                accounts=subject.accounts, clusters=subject.clusters, limit=limit, offset=question.offset,
                lines=question.lines, kept=kept,
            )  # fmt: skip

    def _totals(self, subject: ReportSubject, window: tuple[int, int], kept: OpenRunSnapshot | None) -> GpuTime:
        now = self._clock.utc_s() if kept is None else kept.now
        try:
            with self._turns, self._store.reader() as db:
                return report_totals(
                    db, subject.kind, subject.name, *window, self._settings, now, accounts=subject.accounts,
                    clusters=subject.clusters, kept=kept,
                )  # fmt: skip
        except OutdatedError:
            return self._totals(subject, window, None)

    @staticmethod
    def _is_past(subject: ReportSubject, window: tuple[int, int], kept: OpenRunSnapshot) -> bool:
        """Return whether totals are added up for all users at once: if the snapshot has parts for the window."""
        some = subject.kind != "cluster" and subject.every_cluster
        return some and window in kept.windows and window[1] - window[0] <= _PAST_S

    def _past_totals(self, subject: ReportSubject, window: tuple[int, int], kept: OpenRunSnapshot) -> GpuTime:
        """Return totals that are added up for all users and accounts at once, in four times the time of one.

        The first caller adds up, the others wait for the result. Raises OutdatedError.
        """
        key = window, self._settings.to_text()
        with self._adding:
            known, now_us = self._past.get(key), self._clock.mono_us()
            if known is None or known.until_us < now_us:
                with self._store.reader() as db:
                    tallies = totals_by_account(db, *window, self._settings, kept)
                known = self._past[key] = _PastTotals(tallies, now_us + int(_BEFORE_S * 1e6))
                while len(self._past) > _PAST_WINDOWS:
                    del self._past[next(iter(self._past))]
        user, account = (subject.name, None) if subject.kind == "user" else (None, subject.name)
        accounts = subject.accounts
        chosen = (
            tally
            for (whose, of), tally in known.tallies.items()
            if user in {None, whose} and account in {None, of.account} and (accounts is None or of in accounts)
        )
        return GpuTime(**Tally.sum(chosen).to_json())


def days_before(now: int, days: int) -> int:
    """Return the beginning of the UTC day `days` before today: a window from there has `days` days, and today."""
    return max(0, now - now % DAY_S - days * DAY_S)


def report_subject(scope: Scope, question: ReportQuestion) -> ReportSubject:
    """Return the subject of a question, within what the caller may request. Raises Refusal."""
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
    """Return the clusters that a report on a user requests, if it requests a row for each."""
    return None if question.cluster is None else asked_clusters(question.cluster)


def asked_clusters(text: str) -> Clusters | None:
    """Return the clusters that a text names, as Slurm's -M: names separated by commas, or "all".

    None is every cluster without a row for each, the meaning of "1". Raises Refusal.
    """
    if text in {"1", ALL_CLUSTERS}:
        return None if text == "1" else Clusters()
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
    if "" in names:
        raise Refusal(BAD, f"cluster={text[:40]!r}: expected names separated by commas, or {ALL_CLUSTERS}")
    if len(names) > MAX_CLUSTERS:
        raise Refusal(BAD, f"cluster: {len(names)} names, {MAX_CLUSTERS} at most: use {ALL_CLUSTERS}")
    return Clusters(names)
