"""/analytics/VIEW: one sentence, charts, a table, what the numbers mean, and how they are computed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from typing import Final

from markupsafe import Markup

from gpuwaste.core.text import harmless
from gpuwaste.show.chart import Bars, Chart, Lines
from gpuwaste.show.charts.draw import NARROW, WIDE, chart_svg
from gpuwaste.show.charts.svg import finite
from gpuwaste.show.charts.time_axis import local, time_words, zone_name
from gpuwaste.show.environment import Frame, page
from gpuwaste.show.view_document import (
    Cell,
    Column,
    Fact,
    ViewDocument,
    column_title,
    first_sentence,
    number_text,
    value_text,
)

ROWS: Final = 50
PREVIOUS: Final = "previous"
NOTHING: Final = "none"
"""The values of `compare` in a link: with the period before, with nothing."""
DAYS: Final = (7, 30, 90, 365)
MOST_CHARTS: Final = 12
_MOST_FACTS: Final = 200
_MOST_SENTENCES: Final = 40
_LONGEST: Final = 60
_LONGEST_SENTENCE: Final = 600
_LONGEST_QUERY: Final = 20_000


def link_names(endings: Sequence[str], charts: int) -> dict[str, str]:
    """Return the name of the link to each form of a view, by its ending: csv, json, svg, 2.svg."""
    files = {ending: {"csv": "table (CSV)", "json": "data (JSON)"}.get(ending, "figures (JSON)") for ending in endings}
    for number in range(1, charts + 1):
        name = "chart" if charts == 1 else f"chart {number}"
        files["svg" if number == 1 else f"{number}.svg"] = f"{name} (SVG)"
    return files


@dataclass(frozen=True, slots=True)
class DrawnChart:
    """A chart for a desktop and for a phone."""

    wide: Markup
    narrow: Markup
    zoomable: bool = False
    """Whether it is over time or another number: zoom.js can show a part of it."""


@dataclass(frozen=True, slots=True)
class CellWords:
    """A cell as text, and its full text where it is cut."""

    text: str
    full: str = ""


@dataclass(frozen=True, slots=True)
class Heading:
    """The header of a column; its kind (text, number, time) sets the alignment."""

    title: str
    kind: str


@dataclass(frozen=True, slots=True)
class FactWords:
    """A fact as text."""

    id: str
    means: str
    text: str
    interval: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewBody:
    """The input of a view's template; everything in it has a limited size."""

    name: str
    title: str
    question: str
    window: str
    sentence: str
    narrative: Sequence[str]
    notes: Sequence[str]
    charts: Sequence[DrawnChart]
    columns: Sequence[Heading]
    rows: Sequence[Sequence[CellWords]]
    range: str
    zeros: str
    unknown: str
    """Columns that are unknown in every row, and left out as those of 0."""
    pages: Sequence[tuple[str, str]]
    links: Sequence[tuple[str, str]]
    facts: Sequence[FactWords]
    facts_left_out: int
    sql: str
    parameters: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewForm:
    """The values of a view's form; `kept` are the parameters of the link without a field in the form."""

    days: int | None = 30
    compare: str = ""
    linked: bool = False
    """Whether the link contains what is compared."""
    clusters: str = ""
    other_clusters: str = ""
    several: bool = False
    """Whether clusters can be chosen."""
    kept: Mapping[str, int] = field(default_factory=dict)

    @property
    def choices(self) -> Sequence[int]:
        """The numbers of days that can be chosen."""
        return sorted({*DAYS, self.days}) if self.days else DAYS


def view_page(
    document: ViewDocument,
    number: int,
    frame: Frame,
    page_link: Callable[[int], str],
    form: ViewForm | None = None,
    *,
    json: str = "",
) -> str:
    """Return the page of a view with the given page of its table; `page_link` returns the link of another one.

    `json` is the link to the document, from which zoom.js draws.
    """
    body = view_body(document, number, page_link, frame.links)
    return page("view", frame, view=body, form=form or ViewForm(), json=json)


def view_body(
    document: ViewDocument,
    number: int,
    page_link: Callable[[int], str],
    links: Mapping[str, str],
    zone: tzinfo = UTC,
) -> ViewBody:
    """Return the content of a view's page, with times in `zone`."""
    last = max(1, -(-len(document.rows) // ROWS))
    number = min(max(1, number), last)
    first = (number - 1) * ROWS
    rows = document.rows[first : first + ROWS]
    sentences = [_cut(sentence, _LONGEST_SENTENCE) for sentence in document.narrative[:_MOST_SENTENCES]]
    notes = [note for note in document.notes if note != first_sentence(document)]
    zeros, unknown = _columns_of(document, _is_zero), _columns_of(document, lambda value: value is None)
    kept = [index for index, column in enumerate(document.columns) if column not in (*zeros, *unknown)]
    pages = [("previous", page_link(number - 1))] if number > 1 else []
    pages += [("next", page_link(number + 1))] if number < last else []
    return ViewBody(
        name=document.view,
        title=_cut(document.title, _LONGEST_SENTENCE),
        question=_cut(document.question, _LONGEST_SENTENCE),
        window=window_words(document, zone),
        sentence=_cut(first_sentence(document), _LONGEST_SENTENCE),
        narrative=sentences[1:],
        notes=[_cut(note, _LONGEST_SENTENCE) for note in notes[:_MOST_SENTENCES]],
        charts=[drawn(chart, f"chart{index}", zone) for index, chart in enumerate(document.charts[:MOST_CHARTS])],
        columns=[_heading(document.columns[index], index, document.rows) for index in kept],
        rows=[[cell(row[index], document.columns[index].unit, zone) for index in kept] for row in rows],
        range=_range_words(first, len(rows), document),
        zeros=", ".join(_cut(column.title, _LONGEST) for column in zeros),
        unknown=", ".join(_cut(column.title, _LONGEST) for column in unknown),
        pages=pages,
        links=list(links.items()),
        facts=[_fact(fact) for fact in document.facts[:_MOST_FACTS]],
        facts_left_out=max(0, len(document.facts) - _MOST_FACTS),
        sql=_lines(document.sql[:_LONGEST_QUERY]),
        parameters=[(_cut(name, _LONGEST), _cut(str(value), 200)) for name, value in document.parameters.items()],
    )


def window_words(document: ViewDocument, zone: tzinfo) -> str:
    """Return the window and the clusters of a view as text."""
    clusters = ", ".join(_cut(name, _LONGEST) for name in document.clusters[:20]) or "no cluster"
    window = f"From {time_words(document.start, zone)} to {time_words(document.end, zone)} ({zone_name(zone)})"
    return f"{window}; {'clusters' if len(document.clusters) > 1 else 'cluster'}: {clusters}."


def drawn(chart: Chart, key: str, zone: tzinfo, desk: int = WIDE) -> DrawnChart:
    """Return a chart in two widths; `key` is unique in the page."""
    wide, narrow = (chart_svg(chart, size, f"{key}-{size}", zone) for size in (desk, NARROW))
    zoomable = isinstance(chart, Bars | Lines) and chart.x.scale != "category"
    return DrawnChart(Markup(wide), Markup(narrow), zoomable)  # noqa: S704 chart_svg escapes every text


def _range_words(first: int, count: int, document: ViewDocument) -> str:
    total = len(document.rows) + document.rows_left_out
    left_out = f"; {document.rows_left_out:,} of them are not in the table" if document.rows_left_out else ""
    return f"Rows {first + 1:,} to {first + count:,} of {total:,}{left_out}"


def _columns_of(document: ViewDocument, same: Callable[[Cell], bool]) -> list[Column]:
    """Return the columns with such a value in every row: the table is more readable without them."""
    return [
        column
        for index, column in enumerate(document.columns)
        if document.rows and all(same(row[index]) for row in document.rows)
    ]


def _is_zero(value: Cell) -> bool:
    return value == 0 and not isinstance(value, bool)


def _heading(column: Column, index: int, rows: Sequence[Sequence[Cell]]) -> Heading:
    title = _cut(column_title(column), _LONGEST)
    if column.unit == "UTC s":
        return Heading(title, "time")
    return Heading(title, "text" if any(isinstance(row[index], str) for row in rows) else "number")


def cell(value: Cell, unit: str, zone: tzinfo) -> CellWords:
    """Return a cell as text."""
    if isinstance(value, str):
        text = harmless(value[:1000])
        return CellWords(text) if len(text) <= _LONGEST else CellWords(_cut(text, _LONGEST), text)
    if value is None or isinstance(value, bool):
        return CellWords({None: "not known", True: "yes", False: "no"}[value])
    return CellWords(_number(value, unit, zone))


def _number(value: float, unit: str, zone: tzinfo) -> str:
    if finite(value) is None:
        return "not known"
    if unit == "UTC s":
        found = local(value, zone)
        return f"{found:%Y-%m-%d}" if not (found.hour or found.minute) else f"{found:%Y-%m-%d %H:%M}"
    if unit in {"share", "s"}:
        return value_text(value, unit)
    return number_text(value, unit)


def _fact(fact: Fact) -> FactWords:
    interval = ""
    if fact.low is not None and fact.high is not None:
        low, high = (cell(end, fact.unit, UTC).text for end in (fact.low, fact.high))
        interval = f"{low} to {high}"
    return FactWords(_cut(fact.id, _LONGEST), _cut(fact.means, _LONGEST_SENTENCE), _cut(fact.text, _LONGEST), interval)


def _cut(text: str, most: int) -> str:
    kept = harmless(text[:most])[:most]
    return kept if len(text) <= most else f"{kept[: most - 1]}…"


def _lines(text: str) -> Markup:
    """Return a query with its line breaks; other control characters are escaped."""
    return Markup("\n").join(harmless(line) for line in text.split("\n"))
