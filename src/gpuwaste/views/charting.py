"""Parts of charts shared by views: end states with their roles, classes of size, logarithmic bins."""

from collections.abc import Iterable, Mapping, Sequence
from math import ceil
from typing import Any, Final

from gpuwaste.core.text import harmless
from gpuwaste.core.units import DAY_S
from gpuwaste.show.chart import Axis, Bars, Bins, Layer, Role, Series
from gpuwaste.views.ranking import listing
from gpuwaste.views.view_query import ViewQuery, Window

ENDS: Final[Mapping[str, Role]] = {
    "completed": "completed",
    "failed": "failed",
    "timeout": "timeout",
    "out_of_memory": "out_of_memory",
    "cancelled": "cancelled",
    "node_fail": "node_fail",
    "other": "other",
    "unknown": "unknown",
}
"""The end states with the names of queries (views/queries/end_state.sql); unknown: the log has no state."""
PER_DECADE: Final = 8
ROUNDED_UP: Final = f"{10 ** (1 / PER_DECADE) - 1:.0%}".replace("%", " %")
"""The largest factor by which a value is rounded up to the edge of its bin, as text."""
_LABEL: Final = 40
RUNS_NOTE: Final = "Jobs count in full, also at the edges of the window; a requeued job counts once per run."
NONE_ENDED: Final = "No job ran and ended in this window."
CUT_NOTE: Final = (
    "GPU-hours and CPU-hours outside the window do not count, as in sreport; suspended time counts as held."
)
_UNITS: Final = {"gpus": ("GPU", "GPUs"), "nodes": ("node", "nodes"), "cpus": ("CPU", "CPUs")}


def step_axis(window: Window) -> tuple[list[float], Axis]:
    """Return the positions of bars by day and their axis."""
    at = [float(window.start + place * window.step) for place in range(window.bins)]
    return at, Axis(title="Day" if window.step == DAY_S else f"{window.step_text} per bar", scale="time")


def end_series(rows: Sequence[Mapping[str, Any]]) -> list[Series]:
    """Return a series for each end state that occurs."""
    return [
        Series(name=words(name), role=role, y=[row[name] for row in rows])
        for name, role in ENDS.items()
        if any(row[name] for row in rows)
    ]


def without_waits(asking: ViewQuery) -> str:
    """Return why waits are unknown, "" if they are known: in a log without waits, submissions equal starts."""
    names = [harmless(row["cluster"]) for row in asking.rows("without_waits")]
    return f"The log of {listing(names)} records no waits: choose other clusters with -M." if names else ""


def without_details(asking: ViewQuery) -> str:
    """Return the clusters whose log cannot have timeouts, failed nodes, arrays or interactive jobs, "" for none."""
    return listing([harmless(row["cluster"]) for row in asking.rows("without_details")])


def gpus_note(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return a note if no GPUs are known: a log may have none."""
    return [] if any(row["gpu_s"] for row in rows) else ["No GPU is recorded for these jobs."]


def some_of(part: int, whole: int) -> str:
    """Return a part of the jobs as text: all 280 jobs, 10 of 280 jobs."""
    return f"all {whole:,} jobs" if part == whole else f"{part:,} of {whole:,} jobs"


def words(name: str) -> str:
    """Return an end state as text."""
    return name.replace("_", " ")


def size_text(kind: str, level: int) -> str:
    """Return a class of size: 1 GPU, 2 GPUs, 3-4 GPUs, 5-8 nodes."""
    one, many = _UNITS[kind]
    return f"{size_range(level)} {one if level <= 0 else many}"


def size_range(level: int) -> str:
    """Return the numbers of a class of size: 1, 2, 3-4, 5-8."""
    if level <= 1:
        return "1" if level <= 0 else "2"
    return f"{2 ** (level - 1) + 1}-{2**level}"


def named(name: str, kind: str) -> str:
    """Return a name for a label, "no user" where a log has none."""
    return name[:_LABEL] or f"no {kind}"


def partition_text(name: str) -> str:
    """Return a partition for a label or a sentence: partition gpu, no partition."""
    return f"partition {name[:_LABEL]}" if name else named(name, "partition")


def group_texts(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the names of groups by partition and size; only by size if none of them has a partition."""
    sizes = [size_text(row["kind"], row["level"]) for row in rows]
    if not any(row["partition"] for row in rows):
        return sizes
    return [f"{size} in {partition_text(row['partition'])}" for size, row in zip(sizes, rows, strict=True)]


def user_words(user: str, account: str) -> str:
    """Return a user with their account, if the log has one: alice (physics)."""
    return f"{named(user, 'user')} ({account[:_LABEL]})" if account else named(user, "user")


def decade_edges(bins: int) -> list[float]:
    """Return bins + 1 edges from 1 on, PER_DECADE in each decade."""
    return [round(10 ** (place / PER_DECADE), 3) for place in range(bins + 1)]


def binned(
    title: str,
    axes: tuple[Axis, Axis],
    cells: Iterable[tuple[str, Role, int, int, int]],
    edges: tuple[Sequence[float], Sequence[float]],
    *,
    diagonal: bool = False,
) -> Bins:
    """Return a grid of counts from (layer, role, column, row, count)."""
    columns, height = len(edges[0]) - 1, len(edges[1]) - 1
    layers: dict[tuple[str, Role], list[int]] = {}
    for name, role, x, y, count in cells:
        counts = layers.setdefault((name, role), [0] * (columns * height))
        counts[min(max(y, 0), height - 1) * columns + min(max(x, 0), columns - 1)] += count
    drawn = [Layer(name=name, role=role, counts=counts) for (name, role), counts in layers.items()]
    return Bins(title=title, x=axes[0], y=axes[1], x_edges=edges[0], y_edges=edges[1], layers=drawn, diagonal=diagonal)


def columns_needed(largest: float) -> int:
    """Return the number of bins, in full decades, that includes a bin's number."""
    return max(PER_DECADE, ceil((largest + 1) / PER_DECADE) * PER_DECADE)


def sideways(
    title: str, names: Sequence[str], unit: str, series: Sequence[Series], *, of: str, stacked: bool = True
) -> Bars:
    """Return horizontal bars, one for each name."""
    return Bars(
        title=title,
        x=Axis(title=of, scale="category", categories=[harmless(name) for name in names]),
        y=Axis(title=unit, unit=unit),
        at=[float(place) for place in range(len(names))],
        series=series,
        stacked=stacked,
        sideways=True,
    )
