"""The answers of GET /v1/views: views of the whole system, for operators. Blocks on the store.

Sums of ended days are cached in memory next to the hub's store, for views over a long time.
"""

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count, groupby
from typing import Any, Final, Self

from prometheus_client import Counter
from prometheus_client.core import Metric

from gpuwaste.core.clock import Clock
from gpuwaste.core.config import Config
from gpuwaste.core.errors import NoDataError, UsageError
from gpuwaste.core.parts import Part, Parts
from gpuwaste.core.refusal import BAD, FORBIDDEN, NOT_FOUND, Refusal
from gpuwaste.core.scope import Scope
from gpuwaste.core.site_config import EnergyConfig
from gpuwaste.core.units import DAY_S
from gpuwaste.core.worker import Bus, Worker
from gpuwaste.jobs.host_ports import HostPorts
from gpuwaste.ledger.energy.site_tariff import SiteTariff
from gpuwaste.ledger.judging import Judging
from gpuwaste.ledger.ledger import LedgerSettings
from gpuwaste.show.view_document import ComparisonDocument, ViewDocument, ViewEntry, ViewsDocument
from gpuwaste.store.database import Database
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.store.hub.store_changes import Touched
from gpuwaste.views.compare import compare
from gpuwaste.views.language_model import LanguageModel
from gpuwaste.views.rewriter import RESULTS, Rewriter
from gpuwaste.views.view import Viewed, all_views, look, view_named
from gpuwaste.views.view_query import ViewQuery, ViewQuestion, Window, checked, days_text, period, used

MIN_DAYS: Final = 45
"""Shorter windows are counted at each request."""
_SETTLED_S: Final = 2 * DAY_S  # runs of the last days still change often
_PHASE_S: Final = 900  # days begin at midnight of a zone: these are quarters of an hour apart
_MOST: Final = 4
_IDLE_S: Final = 3600  # a kind not requested for so long is dropped for another one; no answer takes that long
_NUMBERS: Final = count()
_DASHBOARD_S: Final = 300  # a dashboard is kept for so long
_RANGE: Final = 32  # days that are counted at a time: limits the memory


class ViewReads(Part):
    """Builds views for operators."""

    def __init__(
        self,
        store: HubStore,
        settings: LedgerSettings,
        clock: Clock,
        model: LanguageModel | None = None,
        tariff: SiteTariff | None = None,
    ) -> None:
        """Set up; without a tariff a view has kilowatt-hours and no costs."""
        self._store = store
        self._sentences = sentence_counter()
        self.rewriter = None if model is None else Rewriter(model, clock, self._count)
        self._settings = settings
        self._dashboards: dict[tuple[int, str | None], tuple[int, Sequence[ViewDocument]]] = {}
        self._making = threading.Lock()
        self._clock = clock
        self._tariff = tariff or SiteTariff(EnergyConfig(), clock)
        with store.reader() as db:
            self._kept = KeptDays(db, store.touched) if store.alone else None

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of a hub."""
        config, clock = parts.get(Config).analytics, parts.get(HostPorts).clock
        model = LanguageModel(config) if config.model_url else None
        part = cls(parts.get(HubStore), parts.get(Judging).standing, clock, model, parts.get(SiteTariff))
        parts.get(Bus).subscribe(LedgerSettings, part.judge_by)
        return part

    @property
    def workers(self) -> Sequence[Worker]:
        """The thread for the site's language model, if there is one."""
        return () if self.rewriter is None else (self.rewriter.worker,)

    def _count(self, result: str) -> None:
        self._sentences.labels(result).inc()

    def counted(self) -> Iterable[Metric]:
        """Return the metric of the language model's results."""
        return self._sentences.collect()

    def judge_by(self, settings: LedgerSettings) -> None:
        """Use other thresholds from the next document on. Thread-safe."""
        self._settings = settings

    def now(self) -> int:
        """Return the time in UTC seconds."""
        return self._clock.utc_s()

    def listed(self, scope: Scope) -> ViewsDocument:
        """Return the available views. Raises Refusal 403 for ordinary users."""
        _allow(scope)
        found = all_views().values()
        return ViewsDocument(views=[ViewEntry(name=v.name, title=v.title, question=v.question) for v in found])

    def view(self, scope: Scope, name: str, question: ViewQuestion) -> ViewDocument:
        """Return a view. Raises Refusal: 403 for ordinary users, 404 for an unknown view, 400."""
        document = self._viewed(scope, name, question).document
        return document if self.rewriter is None else self.rewriter.document(document)

    def dashboard(self, scope: Scope, days: int, clusters: str | None, *, wait: bool) -> Sequence[ViewDocument]:
        """Return all views of the last days, at most some minutes old; without `wait` none where they are not kept.

        Raises Refusal as `view` does.
        """
        _allow(scope)
        now = self.now()
        kept = self._dashboard((days, clusters), now)
        if kept or not wait:
            return kept
        with self._making:
            if kept := self._dashboard((days, clusters), now):
                return kept
            question = ViewQuestion(now - days * DAY_S, now, clusters)
            found = [self.view(scope, name, question) for name in all_views()]
            others = sorted(self._dashboards.items(), key=lambda entry: entry[1][0])[1 - _MOST :]
            self._dashboards = {**dict(others), (days, clusters): (now, found)}
        return found

    def _dashboard(self, asked: tuple[int, str | None], now: int) -> Sequence[ViewDocument]:
        made, found = self._dashboards.get(asked, (0, []))
        return found if now - _DASHBOARD_S < made <= now else []

    def compared(self, scope: Scope, name: str, before: ViewQuestion, after: ViewQuestion) -> ComparisonDocument:
        """Return a view of two windows or two systems side by side. Raises Refusal as `view` does."""
        return compare(self._viewed(scope, name, before), self._viewed(scope, name, after))

    def _viewed(self, scope: Scope, name: str, question: ViewQuestion) -> Viewed:
        _allow(scope)
        now = self.now()
        start, end = period(question, now)
        clusters = tuple(filter(None, (question.clusters or "").split(",")))
        try:
            window = checked(Window(start, end, now, clusters, question.offset))
            view = view_named(name)
        except UsageError as error:
            raise Refusal(BAD, str(error)) from error
        except NoDataError as error:
            raise Refusal(NOT_FOUND, str(error)) from error
        with self._store.reader() as db:
            asking = ViewQuery(db, window, self._settings, kept=self._kept, tariff=self._tariff.current())
            return look(view, asking)


def sentence_counter() -> Counter:
    """Return the counter of sentences requested from the language model."""
    sentences = Counter(
        "gpuwaste_hub_model_sentences",
        "Sentences of views requested from the language model, by result; only worded ones replace the rules'.",
        ["result"],
        registry=None,
    )
    for result in RESULTS:
        sentences.labels(result)
    return sentences


def _allow(scope: Scope) -> None:
    if not scope.everything:
        raise Refusal(FORBIDDEN, "views of the whole system are for operators")


@dataclass(slots=True)
class _KeptSums:
    """The sums of one kind of days: one first second, the same requested clusters, one zone of hours."""

    number: int
    asked: int  # time of the last request, UTC seconds
    days: dict[str, dict[int, int]] = field(
        default_factory=dict
    )  # by query: the beginning of a day, and its last change


class KeptDays:
    """Cached sums of days; a day with a run that changed since is counted again at the next request.

    Thread-safe. The tables depend only on the runs with a time in that day.
    """

    def __init__(self, db: Database, touched: Touched) -> None:
        self._name = f"kept{next(_NUMBERS)}"
        db.execute(f"ATTACH ':memory:' AS {self._name} (COMPRESS)")
        self._touched = touched
        self._kept: dict[tuple[Any, ...], _KeptSums] = {}
        self._numbers = count()
        self._left: list[str] = []  # tables without readers
        self._lock = threading.Lock()

    def until(self, window: Window) -> int:
        """Return up to when days of a window are cached; its start if none is."""
        if window.start % _PHASE_S or window.start < 0:
            return window.start
        days = (min(window.end, window.now - _SETTLED_S) - window.start) // DAY_S
        if days < MIN_DAYS or self._of(window) is None:
            return window.start
        return window.start + days * DAY_S

    def table(self, db: Database, sums: str, window: Window, known: Mapping[str, Any]) -> str:
        """Return the up-to-date table with query analytics.SUMS for these days. Raises StoreError."""
        kept = self._of(window)
        if kept is None:
            raise AssertionError("days requested that are not kept")
        table = self._table(sums, kept)
        with self._lock:
            while self._left:
                db.execute(f"DROP TABLE IF EXISTS {self._left.pop()}")
            known_days = kept.days.get(sums)
            sql, by_day = days_text(sums), {"grain": DAY_S, "coarse": DAY_S}
            if known_days is None:
                nothing = {**known, **by_day, "from": 0, "until": 0}
                db.execute(f"CREATE OR REPLACE TABLE {table} AS\n{sql}", used(sql, nothing))
                known_days = kept.days[sums] = {}
            for days in self._due(known_days, window.start, known["from"]):
                edges = {"from": min(days), "until": max(days) + DAY_S}
                with db.transaction():
                    db.execute(f"DELETE FROM {table} WHERE since >= $from AND since < $until", edges)  # noqa: S608 own names
                    db.execute(f"INSERT INTO {table} BY NAME\n{sql}", used(sql, {**known, **by_day, **edges}))
                known_days.update(days)
        return table

    def _table(self, sums: str, kept: _KeptSums) -> str:
        return f"{self._name}.{sums}_{kept.number}"

    def _of(self, window: Window) -> _KeptSums | None:
        """Return the days of a window's kind; None if the cache is full of other kinds."""
        kind = window.start % DAY_S, tuple(window.clusters), window.utc_offset_s
        with self._lock:
            if kind not in self._kept:
                self._let_go(window.now)
                if len(self._kept) == _MOST:
                    return None
                self._kept[kind] = _KeptSums(next(self._numbers), window.now)
            kept = self._kept[kind]
            kept.asked = max(kept.asked, window.now)
            return kept

    def _let_go(self, now: int) -> None:
        for kind, kept in list(self._kept.items()):
            if len(self._kept) == _MOST and kept.asked < now - _IDLE_S:
                del self._kept[kind]
                self._left += [self._table(sums, kept) for sums in kept.days]

    def _due(self, known: Mapping[int, int], start: int, end: int) -> Iterator[dict[int, int]]:
        """Yield the days to count, in groups of consecutive days, with their last changes."""
        due = {}
        for day in range(start, end, DAY_S):
            last = self._touched.last(day, day + DAY_S)
            if known.get(day) != last:
                due[day] = last
        for _, found in groupby(enumerate(due), lambda place: (place[1] // DAY_S - place[0], place[0] // _RANGE)):
            yield {day: due[day] for _, day in found}
