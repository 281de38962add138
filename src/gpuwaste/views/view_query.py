"""ViewQuery: views' access to the store over one window, with the queries that were run; Answer: a view's result."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Final, Protocol

from msgspec import Meta

from gpuwaste.core.errors import NoDataError, UsageError
from gpuwaste.core.fields import Name, Number
from gpuwaste.core.units import DAY_S, HOUR_S
from gpuwaste.ledger.energy.tariff import Tariff
from gpuwaste.ledger.ledger import LedgerSettings
from gpuwaste.show.chart import Chart
from gpuwaste.show.view_document import Cell, Column, ViewFacts
from gpuwaste.store.database import Database, QueryAnswer, query_text

MAX_ROWS: Final = 200
MAX_BINS: Final = 400
MAX_BLOCKS: Final = 60
MIN_DAYS: Final = 7
MAX_DAYS: Final = 50 * 366
_PARAMETER: Final = re.compile(r"\$([a-z_]+)")
_COMMENT: Final = re.compile(r"^--.*\n?", re.MULTILINE)
_DAYS: Final = re.compile(r"^-- days: (\w+)$", re.MULTILINE)
MAX_OFFSET_S: Final = 14 * 3600
_SHOWN_DAYS: Final = 30
Offset = Annotated[int, Meta(ge=-MAX_OFFSET_S, le=MAX_OFFSET_S)]


@dataclass(frozen=True, slots=True)
class ViewQuestion:
    """The parameters of one view; clusters are names separated by commas, None is all of them."""

    start: Number | None = None
    end: Number | None = None
    clusters: Name | None = None
    offset: Offset = 0


def period(question: ViewQuestion, now: int) -> tuple[int, int]:
    """Return the requested start and end at `now`: by default the last days."""
    end = now if question.end is None else question.end
    return (end - _SHOWN_DAYS * DAY_S if question.start is None else question.start), end


def previous(question: ViewQuestion, now: int) -> ViewQuestion:
    """Return the question for the period of the same length just before."""
    start, end = period(question, now)
    return replace(question, start=max(0, start - (end - start)), end=start)


@dataclass(slots=True)
class Answer:
    """What a view found: the part of its document that a view computes itself."""

    facts: ViewFacts
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    charts: Sequence[Chart]
    notes: Sequence[str]
    rows_left_out: int = 0
    weight: float = 0.0
    """The size of the finding, where it is not that of FINDING (views/ranking.py)."""
    parameters: dict[str, Any] = field(default_factory=dict)
    nothing: str = ""
    """Why there is no data, in one sentence, where there is none: the first note, instead of sentences and charts."""


@dataclass(frozen=True, slots=True)
class Window:
    """The window of a view: [start, end) in UTC seconds, as known at `now`; no clusters means all of them.

    Hours of the day are in the zone of `utc_offset_s`.
    """

    start: int
    end: int
    now: int
    clusters: Sequence[str] = ()
    utc_offset_s: int = 0

    @property
    def step(self) -> int:
        """Seconds of one bar: a day, or so many full weeks that the chart stays small."""
        days = -(-(self.end - self.start) // DAY_S)
        return DAY_S if days <= MAX_BINS else 7 * DAY_S * -(-days // (7 * MAX_BINS))

    @property
    def bins(self) -> int:
        """The number of steps; the last one may be cut."""
        return -(-(self.end - self.start) // self.step)

    @property
    def step_text(self) -> str:
        """A step as text."""
        days = self.step // DAY_S
        return "day" if days == 1 else f"{days} days"

    @property
    def block(self) -> int:
        """Seconds of a block of the bootstrap: full days, for at most MAX_BLOCKS blocks."""
        return DAY_S * -(-(self.end - self.start) // (DAY_S * MAX_BLOCKS))

    @property
    def blocks(self) -> int:
        """The number of blocks; 0 if the window is too short for an interval."""
        return 0 if self.end - self.start < MIN_DAYS * DAY_S else -(-(self.end - self.start) // self.block)

    def hour_text(self) -> str:
        """Return the zone of hours of the day."""
        sign = "-" if self.utc_offset_s < 0 else "+"
        hours, rest = divmod(abs(self.utc_offset_s), HOUR_S)
        return f"UTC{sign}{hours:02d}:{rest // 60:02d}" if self.utc_offset_s else "UTC"


class DaySumsCache(Protocol):
    """A cache for sums of ended days."""

    def until(self, window: Window) -> int:
        """Return up to when days of a window are cached; its start if none is."""
        ...

    def table(self, db: Database, sums: str, window: Window, known: Mapping[str, Any]) -> str:
        """Return the up-to-date table with the result of query analytics.SUMS for these days."""
        ...


@dataclass(slots=True)
class ViewQuery:
    """One view's queries to the store."""

    db: Database
    window: Window
    settings: LedgerSettings = field(default_factory=LedgerSettings)
    asked: dict[str, str] = field(default_factory=dict)
    kept: DaySumsCache | None = None
    tariff: Tariff = field(default_factory=Tariff)

    def rows(self, name: str, **more: Any) -> list[dict[str, Any]]:
        """Return the rows of query NAME. Raises StoreError."""
        answer = self.answer(name, **more)
        return [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]

    def answer(self, name: str, **more: Any) -> QueryAnswer:
        """Return the rows of query NAME as tuples. Raises StoreError.

        A line `-- days: SUMS` is replaced by query SUMS, whose rows are sums of one or more days: those of cached days
        are from the cache.
        """
        sql = query_text(name)
        known = {**self.parameters(), **more}
        self.asked[f"analytics.{name}"] = _DAYS.sub(lambda match: days_text(match[1]), sql)
        if self.kept is not None:
            known["from"] = self.kept.until(self.window)
        sql = _DAYS.sub(lambda match: self._days(match[1], known), sql)
        return self.db.answer_to(sql, used(sql, known))

    def _days(self, sums: str, known: Mapping[str, Any]) -> str:
        """Return the SQL of sums: cached days from the cache, later ones counted now."""
        if self.kept is None or known["from"] == self.window.start:
            return days_text(sums)
        table = self.kept.table(self.db, sums, self.window, known)
        kept = f"    SELECT * FROM {table} WHERE since >= $start AND since < $from"  # noqa: S608 own names
        return f"{kept}\n    UNION ALL BY NAME\n{days_text(sums)}"

    def parameters(self) -> dict[str, Any]:
        """Return the parameters that every query may use."""
        window = self.window
        return {
            "start": window.start,
            "end": window.end,
            "now": window.now,
            "clusters": list(window.clusters) or None,
            "step": window.step,
            "bins": window.bins,
            "block": window.block,
            "offset": window.utc_offset_s,
            "from": window.start,
            "until": window.end,
            "grain": window.block,
            "coarse": window.block * MAX_BLOCKS,
        }


def days_text(sums: str) -> str:
    """Return the SQL of sums by day: the text of query SUMS."""
    return query_text(sums)


def used(sql: str, known: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that a query uses."""
    return {key: known[key] for key in sorted(set(_PARAMETER.findall(_COMMENT.sub("", sql))))}


def checked(window: Window) -> Window:
    """Return a valid window, with its end not after `now`. Raises UsageError."""
    if window.start >= window.end:
        raise UsageError(f"start {window.start} is not before end {window.end}")
    if window.end - window.start > MAX_DAYS * DAY_S:
        raise UsageError(f"the window is longer than {MAX_DAYS} days: give a later start")
    return replace(window, end=min(window.end, window.now)) if window.start < window.now else window


def stored_window(
    db: Database, start: int | None, end: int | None, clusters: Sequence[str] = (), utc_offset_s: int = 0
) -> Window:
    """Return a window on a store without writers: by default all its jobs, as of the last time in it.

    Raises NoDataError where it has no jobs, or none of one of the clusters; UsageError.
    """
    known = [row["cluster"] for row in db.rows("clusters")]
    if missing := sorted(set(clusters) - set(known)):
        raise NoDataError(
            f"no jobs of cluster {missing[0]!r}: clusters with jobs are {', '.join(known[:MIN_DAYS]) or 'none'}"
        )
    bounds = db.rows("store_bounds", {"clusters": list(clusters) or None})[0]
    if bounds["first"] is None:
        raise NoDataError("the store has no jobs")
    now = bounds["last"] + 1
    first = bounds["first"] - (bounds["first"] + utc_offset_s) % DAY_S
    window = Window(first if start is None else start, now if end is None else end, now, clusters, utc_offset_s)
    return checked(window)
