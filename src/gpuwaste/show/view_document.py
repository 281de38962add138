"""What a view answers with: every number with its unit and the query that it is of."""

from collections.abc import Sequence
from typing import Annotated, Any

from msgspec import Meta, Struct

from gpuwaste.show.chart import Chart

Cell = str | int | float | bool | None


class Column(Struct, kw_only=True, frozen=True):
    """A column of a view's table."""

    name: str
    title: str
    unit: str = ""


class Fact(Struct, kw_only=True, frozen=True):
    """One number of which a sentence may speak."""

    id: Annotated[str, Meta(description="Unique within the view: wait_p95_s, wasted_share.alice.")]
    value: float | int | str | None
    unit: str
    text: Annotated[str, Meta(description="The value as it is printed: 2 h 14 min, 39 %, 312.4 GPU-hours.")]
    means: Annotated[str, Meta(description="What it is, in words.")]
    query: Annotated[str, Meta(description="The name of the query that it is of.")]
    low: Annotated[float | None, Meta(description="Lower end of the 95 % interval, where one was computed.")] = None
    high: float | None = None


class ViewDocument(Struct, kw_only=True, frozen=True):
    """One view over a window: tables, charts, facts and what they say."""

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
    notes: Annotated[
        Sequence[str], Meta(description="What a reader must know: cut at the edges, jobs whole, left out.")
    ]
    sql: Annotated[str, Meta(description="The query as it was asked.")]
    parameters: dict[str, Any]
    model: Annotated[str, Meta(description="The language model that worded sentences; empty: none.")] = ""
    model_sentences: Annotated[
        Sequence[int], Meta(description="Places in `narrative`, from 0, of the sentences in its words.")
    ] = ()


class ViewEntry(Struct, kw_only=True, frozen=True):
    """One view that can be asked for."""

    name: str
    title: str
    question: str


class ViewsDocument(Struct, kw_only=True, frozen=True):
    """The views that there are."""

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
    changes: Annotated[Sequence[Change], Meta(description="What is more than noise first, the largest change first.")]
    narrative: Sequence[str]
    notes: Sequence[str]
