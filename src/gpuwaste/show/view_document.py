"""The documents of views: every number with its unit, its text, its interval, and its query."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

from msgspec import Meta, Struct

from gpuwaste.core.bootstrap import BootstrapSample, interval
from gpuwaste.core.text import harmless
from gpuwaste.core.units import DAY_S, HOUR_S, MINUTE_S, say_hours, say_number
from gpuwaste.show.chart import Chart

Cell = str | int | float | bool | None
_LONGEST_NAME: Final = 64
_PERCENT: Final = 100
_SMALL: Final = 10
_PLAIN: Final = frozenset({"", "s", "share", "UTC s", "jobs", "users", "steps"})


class Column(Struct, kw_only=True, frozen=True):
    """A column of a view's table."""

    name: str
    title: str
    unit: str = ""


class Fact(Struct, kw_only=True, frozen=True):
    """One number that a sentence may use."""

    id: Annotated[str, Meta(description="Unique within the view: wait_p95_s, wasted_share.alice.")]
    value: float | int | str | None
    unit: str
    text: Annotated[str, Meta(description="The value as it is printed: 2 h 14 min, 39 %, 312.4 GPU-hours.")]
    means: Annotated[str, Meta(description="Description of the value.")]
    query: Annotated[str, Meta(description="Name of the query that it belongs to.")]
    low: Annotated[float | None, Meta(description="Lower end of the 95 % interval, where one was computed.")] = None
    high: float | None = None


class ViewDocument(Struct, kw_only=True, frozen=True):
    """One view over a window: tables, charts, facts and sentences made from them."""

    view: str
    title: str
    question: Annotated[str, Meta(description="The question that the view answers.")]
    clusters: Sequence[str]
    start: Annotated[int, Meta(description="UTC seconds.")]
    end: Annotated[int, Meta(description="UTC seconds.")]
    generated: Annotated[int, Meta(description="UTC seconds.")]
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    rows_left_out: int
    charts: Sequence[Chart]
    facts: Sequence[Fact]
    narrative: Annotated[Sequence[str], Meta(description="Sentences from the facts, the largest change first.")]
    notes: Annotated[Sequence[str], Meta(description="Notes for the reader: cut-off data, jobs that were left out.")]
    sql: Annotated[str, Meta(description="The query as it ran.")]
    parameters: dict[str, Any]
    weight: Annotated[
        float | None, Meta(description="Size of the finding, by which views are ordered; null: there is no data.")
    ] = 0.0
    model: Annotated[str, Meta(description="The language model that worded sentences; empty: none.")] = ""
    model_sentences: Annotated[
        Sequence[int], Meta(description="Places in `narrative`, from 0, of the sentences in its words.")
    ] = ()


def first_sentence(document: ViewDocument) -> str:
    """Return the finding of a view in one sentence; without data the reason."""
    found = document.narrative or (document.notes if document.weight is None else ())
    return found[0] if found else "Nothing in this window."


class ViewEntry(Struct, kw_only=True, frozen=True):
    """One available view."""

    name: str
    title: str
    question: str


class ViewsDocument(Struct, kw_only=True, frozen=True):
    """The available views."""

    views: Sequence[ViewEntry]


class Change(Struct, kw_only=True, frozen=True):
    """One fact of two windows or two systems."""

    id: str
    means: str
    unit: str
    before: float
    after: float
    before_text: str
    after_text: str
    difference: float
    text: Annotated[str, Meta(description="The difference as it is printed: +35 %, -4 points.")]
    low: Annotated[float | None, Meta(description="Lower end of the 95 % interval of the difference.")] = None
    high: float | None = None
    beyond_noise: Annotated[
        bool | None, Meta(description="Whether the interval is above or below 0; null where there are too few days.")
    ] = None


class ComparisonDocument(Struct, kw_only=True, frozen=True):
    """One view of two windows, or of two systems."""

    view: str
    title: str
    before: ViewDocument
    after: ViewDocument
    changes: Annotated[Sequence[Change], Meta(description="Significant changes first, then by size.")]
    narrative: Sequence[str]
    notes: Sequence[str]


def duration_text(seconds: float) -> str:
    """Return 45 s, 12 min, 2 h 14 min, 3 d 4 h."""
    whole = round(seconds)
    if whole < 2 * MINUTE_S:
        return f"{whole} s"
    if whole < HOUR_S - MINUTE_S // 2:
        return f"{round(whole / MINUTE_S)} min"
    minutes = round(whole / MINUTE_S)
    if whole < DAY_S:
        return f"{minutes // 60} h {minutes % 60} min"
    hours = round(whole / HOUR_S)
    return f"{hours // 24} d {hours % 24} h"


def value_text(value: float | str | None, unit: str) -> str:
    """Return a value as text: with its unit, GPU-hours with one decimal, shares as percent without decimals."""
    if value is None:
        return "not known"
    if isinstance(value, str):
        return harmless(value)[:_LONGEST_NAME]
    if unit == "s":
        return duration_text(value)
    if unit == "share":
        percent = value * _PERCENT
        return f"{say_number(percent, 1 if 0 < percent < 1 else 0)} %"
    number = number_text(value, unit, 1 if abs(value) >= _SMALL else 2)
    singular = value == 1 and not unit.endswith("-hours")
    return f"{number} {unit.removesuffix('s') if singular else unit}".rstrip()


def column_title(column: Column) -> str:
    """Return the heading of a column with its unit, unless it is a count, or the cells or the title have the unit."""
    title, unit = column.title, column.unit
    return title if unit in _PLAIN or unit.casefold() in title.casefold() else f"{title}, {unit}"


def number_text(value: float, unit: str, decimals: int = 1) -> str:
    """Return a number for a column that names the unit."""
    if not value:
        return "0"
    if unit.endswith("-hours"):
        return say_hours(value)
    return f"{value:,}" if isinstance(value, int) else say_number(value, decimals)


@dataclass(slots=True)
class ViewFacts:
    """The facts of one view in order, each id once, with the samples for comparisons."""

    query: str
    found: list[Fact] = field(default_factory=list)
    samples: dict[str, BootstrapSample] = field(default_factory=dict)

    def add(
        self, name: str, value: float | str | None, unit: str, means: str, *, sample: BootstrapSample | None = None
    ) -> None:
        """Add a fact; `unit` is "share", "s", "GPU-hours", "jobs", "" for a name."""
        usable = sample if sample is not None and sample.blocks else None
        low, high = None, None
        if usable is not None and isinstance(value, int | float):
            low, high = interval(usable, value) or (None, None)
            self.samples[name] = usable
        kept = value_text(value, "") if isinstance(value, str) else value
        text, query = value_text(value, unit), f"analytics.{self.query}"
        self.found.append(Fact(id=name, value=kept, unit=unit, text=text, means=means, query=query, low=low, high=high))

    def share(self, name: str, part: float, whole: float, means: str, *, sample: BootstrapSample | None = None) -> None:
        """Add the share of `part` in `whole`; not known if `whole` is 0."""
        self.add(name, part / whole if whole else None, "share", means, sample=sample)


def ratio(rows: Iterable[Mapping[str, Any]], part: str, whole: str, blocks: int) -> BootstrapSample:
    """Return the sample of sum(part) / sum(whole) from rows with a column `block`."""
    found = [[0.0, 0.0] for _ in range(blocks)]
    for row in rows:
        if 0 <= row["block"] < blocks:
            found[row["block"]][0] += row[part] or 0
            found[row["block"]][1] += row[whole] or 0
    return BootstrapSample(blocks=found)


def histogram(rows: Iterable[Sequence[int]], edges: Sequence[float], blocks: int, quantile: float) -> BootstrapSample:
    """Return the sample of a quantile from (block, bin, count)."""
    counts = [[0] * len(edges) for _ in range(blocks)]
    for block, place, count in rows:
        if 0 <= block < blocks:
            counts[block][min(max(place, 0), len(edges) - 1)] += count
    return BootstrapSample(blocks=counts, quantile=quantile, edges=edges)
