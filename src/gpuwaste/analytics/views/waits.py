"""Waits: median and 95th percentile by partition and size, and against the hour of submission."""

from bisect import bisect_left
from itertools import accumulate
from typing import Any, Final

from gpuwaste.analytics.answer import Answer
from gpuwaste.analytics.asking import Asking
from gpuwaste.analytics.chart import Axis, Chart, Lines, Series
from gpuwaste.analytics.charting import PER_DECADE, RUNS_NOTE, named, sideways, size_text, without_waits
from gpuwaste.analytics.document import Column
from gpuwaste.analytics.facts import Facts, histogram

TITLE: Final = "Waits"
QUESTION: Final = "How long do jobs wait, by partition and size, and by the hour at which they are submitted?"
SENTENCES: Final = (
    "Half of the jobs that started waited {wait_p50_s} or less; one in twenty waited longer than {wait_p95_s}.",
    "The longest wait was {wait_longest_s}; {wait_long_share} of the jobs waited longer than an hour.",
    "The slowest group is {slow_size} in partition {slow_partition}: one in twenty waited longer than {slow_p95_s}.",
    "Jobs submitted at hour {worst_hour} of the day waited longest: one in twenty longer than {worst_hour_p95_s}.",
)
_COLUMNS: Final = (
    Column(name="partition", title="Partition"),
    Column(name="size", title="Size"),
    Column(name="runs", title="Jobs", unit="jobs"),
    Column(name="p50_s", title="Median wait", unit="s"),
    Column(name="p95_s", title="95th percentile", unit="s"),
    Column(name="longest_s", title="Longest", unit="s"),
)
_SHOWN: Final = 20
_ENOUGH: Final = 20  # runs of which a 95th percentile says something
_DECADES: Final = 8
_EDGES: Final = (0.0, *(10 ** (place / PER_DECADE) for place in range(1, _DECADES * PER_DECADE + 1)))
_QUANTILES: Final = (0.5, 0.95)


def answer(asking: Asking) -> Answer:
    """Ask for the groups, all jobs, and the bins by hour and by day."""
    if unknown := without_waits(asking):
        return Answer(Facts("without_waits"), _COLUMNS, [], [], [unknown])
    groups, (whole,) = asking.rows("waits"), asking.rows("waits_all")
    bins = asking.answer("waits_bins").rows
    facts = Facts("waits_all")
    blocks = asking.window.blocks
    by_block = [(block, place, count) for hour, block, place, count in bins if block is not None]
    facts.add("runs", whole["runs"], "jobs", "jobs that started")
    for name, text, at in (("p50", "median wait", 0), ("p95", "95th percentile of waits", 1)):
        value = None if whole["wait_s"] is None else whole["wait_s"][at]
        sample = histogram(by_block, _EDGES, blocks, _QUANTILES[at]) if value is not None else None
        facts.add(f"wait_{name}_s", value, "s", text, sample=sample)
    facts.add("wait_longest_s", whole["longest_s"], "s", "longest wait")
    facts.share("wait_long_share", whole["long"], whole["runs"], "share of jobs that waited longer than an hour")
    many = [row for row in groups if row["runs"] >= _ENOUGH]
    if many:
        slow = max(many, key=lambda row: row["wait_s"][1])
        facts.add("slow_partition", slow["partition"] or "none", "", "partition of the group with the longest waits")
        facts.add("slow_size", size_text(slow["kind"], slow["level"]), "", "size of the group with the longest waits")
        facts.add("slow_p95_s", slow["wait_s"][1], "s", "95th percentile of waits of that group")
    hours = _hours([(hour, place, count) for hour, block, place, count in bins if hour is not None])
    known = [(p95, hour) for hour, (_, p95) in enumerate(hours) if p95 is not None]
    if known:
        p95, hour = max(known)
        facts.add("worst_hour", hour, "", f"hour of the day with the longest waits ({asking.window.hour_text()})")
        facts.add("worst_hour_p95_s", p95, "s", "95th percentile of waits of jobs submitted at that hour")
    table = [
        [row["partition"], size_text(row["kind"], row["level"]), row["runs"], *row["wait_s"], row["longest_s"]]
        for row in groups
    ]
    notes = [
        RUNS_NOTE,
        "Waits are from submission to start, of jobs that started in the window; time held or not eligible counts.",
        (
            f"Hours of the day are {asking.window.hour_text()}; waits by hour are rounded up to the next of "
            f"{PER_DECADE} steps in each power of ten."
        ),
    ]
    return Answer(facts, _COLUMNS, table, _charts(groups, hours, asking.window.hour_text()), notes)


def _hours(bins: list[tuple[int, int, int]]) -> list[tuple[float | None, float | None]]:
    """Return median and 95th percentile of each hour of the day, as the upper edges of their bins."""
    counts = [[0] * len(_EDGES) for _ in range(24)]
    for hour, place, count in bins:
        counts[hour][min(place, len(_EDGES) - 1)] += count
    found: list[tuple[float | None, float | None]] = []
    for own in counts:
        heights = list(accumulate(own))
        if not heights[-1]:
            found.append((None, None))
            continue
        p50, p95 = (round(_EDGES[bisect_left(heights, q * heights[-1])], 1) for q in _QUANTILES)
        found.append((p50, p95))
    return found


def _charts(groups: list[dict[str, Any]], hours: list[tuple[float | None, float | None]], zone: str) -> list[Chart]:
    shown = groups[:_SHOWN]
    names = [f"{named(row['partition'], 'partition')}, {size_text(row['kind'], row['level'])}" for row in shown]
    p50 = Series(name="median", role="main", y=[float(row["wait_s"][0]) for row in shown])
    p95 = Series(name="95th percentile", role="second", y=[float(row["wait_s"][1]) for row in shown])
    bars = sideways("Waits by partition and size", names, "s", [p50, p95], of="Partition and size", stacked=False)
    lines = Lines(
        title="Waits by hour of submission",
        x=Axis(title="Hour of the day", unit=zone),
        y=Axis(title="Wait", unit="s", scale="log"),
        at=[float(hour) for hour in range(24)],
        series=[
            Series(name="median", role="main", y=[pair[0] for pair in hours]),
            Series(name="95th percentile", role="second", y=[pair[1] for pair in hours]),
        ],
    )
    return [bars, lines]
