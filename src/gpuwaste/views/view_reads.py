"""What GET /v1/views answers: views of the whole system, for operators. Blocks on the store."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Self

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
from gpuwaste.ledger.ledger_settings import LedgerSettings
from gpuwaste.show.view_document import ComparisonDocument, ViewDocument, ViewEntry, ViewsDocument
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.views.compare import compare
from gpuwaste.views.kept_days import KeptDays
from gpuwaste.views.language_model import LanguageModel
from gpuwaste.views.rewriter import RESULTS, Rewriter
from gpuwaste.views.view import Viewed, all_views, look, view_named
from gpuwaste.views.view_query import ViewQuery, Window, checked

_DAYS: Final = 30
MAX_OFFSET_S: Final = 14 * 3600


@dataclass(frozen=True, slots=True)
class ViewQuestion:
    """The parameters of one view; clusters are names separated by commas, None is all of them."""

    start: int | None = None
    end: int | None = None
    clusters: str | None = None
    offset: int = 0


def period(question: ViewQuestion, now: int) -> tuple[int, int]:
    """Return start and end of what is asked for at `now`: the last days by default."""
    end = now if question.end is None else question.end
    return (end - _DAYS * DAY_S if question.start is None else question.start), end


def previous(question: ViewQuestion, now: int) -> ViewQuestion:
    """Return the question about the period of the same length just before."""
    start, end = period(question, now)
    return replace(question, start=max(0, start - (end - start)), end=start)


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
        """Take the prices of energy; without them a view has kilowatt-hours and no costs."""
        self._store = store
        self._sentences = sentence_counter()
        self.rewriter = None if model is None else Rewriter(model, clock, self._count)
        self._settings = settings
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
        """The thread that asks the site's language model, where there is one."""
        return () if self.rewriter is None else (self.rewriter.worker,)

    def _count(self, result: str) -> None:
        self._sentences.labels(result).inc()

    def counted(self) -> Iterable[Metric]:
        """Return what became of the sentences that the language model was asked for."""
        return self._sentences.collect()

    def judge_by(self, settings: LedgerSettings) -> None:
        """Use other thresholds from the next document on; for any thread."""
        self._settings = settings

    def now(self) -> int:
        """Return the time in UTC seconds."""
        return self._clock.utc_us() // 1_000_000

    def listed(self, scope: Scope) -> ViewsDocument:
        """Return the views that there are. Raises Refusal 403 for ordinary users."""
        _allow(scope)
        found = all_views().values()
        return ViewsDocument(views=[ViewEntry(name=v.name, title=v.title, question=v.question) for v in found])

    def view(self, scope: Scope, name: str, question: ViewQuestion) -> ViewDocument:
        """Return a view. Raises Refusal: 403 for ordinary users, 404 for a view that there is not, 400."""
        document = self._viewed(scope, name, question).document
        return document if self.rewriter is None else self.rewriter.document(document)

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
    """Return what counts the sentences that the language model was asked for."""
    sentences = Counter(
        "gpuwaste_hub_model_sentences",
        "Sentences of views that the language model was asked for, by result; all but worded stay the rules'.",
        ["result"],
        registry=None,
    )
    for result in RESULTS:
        sentences.labels(result)
    return sentences


def _allow(scope: Scope) -> None:
    if not scope.everything:
        raise Refusal(FORBIDDEN, "views of the whole system are for operators")
