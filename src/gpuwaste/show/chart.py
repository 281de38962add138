"""The charts of views as data: axes with units and values by role. web draws them as SVG; there are no colours here."""

from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import Meta, Struct

Scale = Literal["linear", "log", "time", "category"]
"""`time` has UTC seconds."""

Role = Literal[
    "high", "moderate", "low", "idle", "unknown", "suspended",
    "completed", "failed", "timeout", "out_of_memory", "cancelled", "node_fail", "other",
    "main", "second", "third", "muted",
]  # fmt: skip
"""The meaning of a mark: a level of use, an end state, or the first, second and third of compared things."""


class Axis(Struct, kw_only=True, frozen=True):
    """One axis: `unit` is printed next to the title ("h", "GPU-hours", "%", "jobs"), "" for a plain name."""

    title: str
    unit: str = ""
    scale: Scale = "linear"
    categories: Sequence[str] = ()
    reach: Annotated[
        Sequence[float], Meta(description="Values of a compared chart, which the scale includes as well.")
    ] = ()


class Series(Struct, kw_only=True, frozen=True):
    """One value of y for each x of its chart; null is "not known", never 0."""

    name: str
    role: Role
    y: Sequence[float | None]


class Bars(Struct, kw_only=True, frozen=True, tag="bars"):
    """Bars over categories or times; stacked in the order of the series where `stacked`."""

    title: str
    x: Axis
    y: Axis
    at: Annotated[Sequence[float], Meta(description="The position of each bar: UTC seconds, or the category's index.")]
    series: Sequence[Series]
    stacked: bool = True
    sideways: Annotated[
        bool, Meta(description="Whether bars are horizontal, for long names of users and accounts.")
    ] = False


class Lines(Struct, kw_only=True, frozen=True, tag="lines"):
    """Lines over x, with a band between `low` and `high` where both are given."""

    title: str
    x: Axis
    y: Axis
    at: Sequence[float]
    series: Sequence[Series]
    low: Sequence[float | None] = ()
    high: Sequence[float | None] = ()


class Layer(Struct, kw_only=True, frozen=True):
    """The counts of one group of points, row by row from the lowest y, each row from the lowest x."""

    name: str
    role: Role
    counts: Sequence[int]


class Bins(Struct, kw_only=True, frozen=True, tag="bins"):
    """Points counted on a grid: a scatter of any size in a few kilobytes."""

    title: str
    x: Axis
    y: Axis
    x_edges: Annotated[Sequence[float], Meta(description="Columns + 1 values of x, rising.")]
    y_edges: Annotated[Sequence[float], Meta(description="Rows + 1 values of y, rising.")]
    layers: Sequence[Layer]
    diagonal: Annotated[bool, Meta(description="Whether the line x = y is drawn.")] = False
    reach: Annotated[int, Meta(description="A count of a compared chart, which the shades include as well.")] = 0


class Grid(Struct, kw_only=True, frozen=True, tag="grid"):
    """A heat map of rows and columns with a value in each cell; null is "not known"."""

    title: str
    x: Axis
    y: Axis
    columns: Annotated[Sequence[float | str], Meta(description="UTC seconds, or names.")]
    rows: Sequence[str]
    cells: Annotated[Sequence[float | None], Meta(description="Row by row.")]
    unit: str
    reach: Annotated[float, Meta(description="A value of a compared chart, which the shades include as well.")] = 0


class Row(Struct, kw_only=True, frozen=True):
    """A row of a Gantt chart with as many lanes: a node with its GPUs."""

    name: str
    lanes: int
    down: Annotated[Sequence[tuple[float, float]], Meta(description="From, until: hatched.")] = ()


class Span(Struct, kw_only=True, frozen=True):
    """A bar of a Gantt chart over some of its row's lanes."""

    row: int
    first: Annotated[float, Meta(description="The first lane, from 0; a part of a lane where bars share it.")]
    lanes: float
    start: float
    end: float
    shade: Annotated[int, Meta(description="Place in `shades`.")]
    name: str
    words: str


class Gantt(Struct, kw_only=True, frozen=True, tag="gantt"):
    """The holder of each lane of each row over time; bars differ by shade, from light to dark, and by their names."""

    title: str
    x: Axis
    start: float
    end: float
    rows: Sequence[Row]
    spans: Sequence[Span]
    shades: Annotated[Sequence[str], Meta(description="What each shade means, the lightest first.")]
    note: Annotated[str, Meta(description="What is not drawn; empty: everything is drawn.")] = ""


Chart = Bars | Lines | Bins | Grid | Gantt
