"""Waits: median and 95th percentile by partition and size, and against the hour of submission."""

from bisect import bisect_left
from itertools import accumulate
from typing import Any, Final

from gpuwaste.show.chart import Axis, Chart, Lines, Role, Series
from gpuwaste.show.view_document import Column, ViewFacts, histogram
from gpuwaste.views.charting import PER_DECADE, ROUNDED_UP, RUNS_NOTE, group_texts, sideways, size_text, without_waits
from gpuwaste.views.ranking import SHOWN, LostShare, Ranking, Superlative, listing, ranking
from gpuwaste.views.view_query import Answer, ViewQuery

TITLE: Final = "Waits"
QUESTION: Final = "How long do jobs wait, by partition, size and hour of submission?"
SENTENCES: Final = (
    "Half of the jobs that started waited {wait_p50_s} or less[; one in twenty waited longer than {wait_p95_s}].",
    "The longest wait was {wait_longest_s}[; {wait_long_share+} of the jobs waited longer than an hour].",
    (
        "Jobs of {slow_group} waited longest: one in twenty longer than {slow_p95_s} (of the groups with "
        "{enough_jobs} or more)."
    ),
    "Jobs submitted in {worst_hour} of the day waited longest: one in twenty longer than {worst_hour_p95_s}.",
)
_P95: Final = "95th percentile"
_GROUPS: Final = "Waits by partition and size"
_HOURS: Final = "Waits by hour of submission"
SLOWEST: Final = Superlative("slow_group", "slow_p95_s", "bars", _GROUPS, series=(_P95,))
WORST_HOUR: Final = Superlative("worst_hour", "worst_hour_p95_s", "bars", _HOURS, series=(_P95,))
SUPERLATIVES: Final = (SLOWEST, WORST_HOUR, Superlative("", "wait_longest_s", "table", "longest_s"))
FINDING: Final = LostShare("wait_long_share", "jobs")
_COLUMNS: Final = (
    Column(name="partition", title="Partition"),
    Column(name="size", title="Size"),
    Column(name="runs", title="Jobs", unit="jobs"),
    Column(name="p50_s", title="Median wait", unit="s"),
    Column(name="p95_s", title="95th percentile", unit="s"),
    Column(name="longest_s", title="Longest", unit="s"),
)
_SERIES: Final[tuple[tuple[str, Role], ...]] = (("median", "main"), (_P95, "second"))
_ENOUGH: Final = 20  # least number of runs for a meaningful 95th percentile
_DECADES: Final = 8
_EDGES: Final = (0.0, *(10 ** (place / PER_DECADE) for place in range(1, _DECADES * PER_DECADE + 1)))
_QUANTILES: Final = (0.5, 0.95)


def answer(asking: ViewQuery) -> Answer:
    """Query the groups, all jobs, and the bins by hour and by day."""
    if unknown := without_waits(asking):
        return Answer(ViewFacts("without_waits"), _COLUMNS, [], [], [], nothing=unknown)
    groups, (whole,) = asking.rows("waits"), asking.rows("waits_all")
    bins = asking.answer("waits_bins").rows
    facts = ViewFacts("waits_all")
    blocks = asking.window.blocks
    by_block = [(block, place, count) for hour, block, place, count in bins if block is not None]
    facts.add("runs", whole["runs"], "jobs", "jobs that started")
    for name, text, at in (("p50", "median wait", 0), ("p95", "95th percentile of waits", 1)):
        value = None if whole["wait_s"] is None else whole["wait_s"][at]
        sample = histogram(by_block, _EDGES, blocks, _QUANTILES[at]) if value is not None else None
        facts.add(f"wait_{name}_s", value, "s", text, sample=sample)
    facts.add("wait_longest_s", whole["longest_s"], "s", "longest wait")
    facts.share("wait_long_share", whole["long"], whole["runs"], "share of jobs that waited longer than an hour")
    ranked, small = _ranked(groups)
    if ranked.names:
        facts.add("enough_jobs", f"{_ENOUGH} jobs", "", "least number of jobs of a group with a 95th percentile")
        means = "group by partition and size with the longest waits", "95th percentile of waits of that group"
        ranked.add(facts, SLOWEST, "s", means, some=False)
    by_hour = [(hour, place, count) for hour, block, place, count in bins if hour is not None]
    hours = _hours(by_hour, whole["longest_s"])
    worst = ranking((hour, f"hour {hour}", p95) for hour, (_, p95) in enumerate(hours) if p95 is not None)
    zone = asking.window.hour_text()
    means = (
        f"hour of the day with the longest waits ({zone})",
        "95th percentile of waits of jobs submitted at that hour",
    )
    worst.add(facts, WORST_HOUR, "s", means, some=False)
    table = [
        [row["partition"], size_text(row["kind"], row["level"]), row["runs"], *row["wait_s"], row["longest_s"]]
        for row in (*ranked.groups, *small.groups)
    ]
    notes = [
        RUNS_NOTE,
        "Waits are from submission to start, of jobs that started in the window; time on hold counts too.",
        f"Hours of the day are {zone}; hourly waits are rounded up by at most {ROUNDED_UP}.",
        *_left_out(ranked, small),
    ]
    charts = _charts(ranked if ranked.names else small, hours, zone)
    nothing = "" if whole["runs"] else "No job started in this window."
    return Answer(facts, _COLUMNS, table, charts, notes, nothing=nothing)


def _ranked(groups: list[dict[str, Any]]) -> tuple[Ranking[dict[str, Any]], Ranking[dict[str, Any]]]:
    """Return the groups by their 95th percentile, the slowest first: those with enough jobs, and the others."""
    named = list(zip(groups, group_texts(groups), strict=True))
    many, few = (
        ranking((row, name, row["wait_s"][1]) for row, name in named if (row["runs"] >= _ENOUGH) is enough)
        for enough in (True, False)
    )
    return many, few


def _left_out(ranked: Ranking[dict[str, Any]], small: Ranking[dict[str, Any]]) -> list[str]:
    """Return notes: which groups the chart and the sentence leave out; the table has all."""
    if not small.names:
        return []
    if not ranked.names:
        return [f"No group has {_ENOUGH} jobs: too few for a 95th percentile, so none is named the slowest."]
    return [f"Groups with fewer than {_ENOUGH} jobs are only in the table: {listing(small.names)}."]


def _hours(bins: list[tuple[int, int, int]], longest_s: float) -> list[tuple[float | None, float | None]]:
    """Return median and 95th percentile of each hour of the day, as the upper edges of their bins, or the longest."""
    counts = [[0] * len(_EDGES) for _ in range(24)]
    for hour, place, count in bins:
        counts[hour][min(place, len(_EDGES) - 1)] += count
    found: list[tuple[float | None, float | None]] = []
    for own in counts:
        heights = list(accumulate(own))
        if not heights[-1]:
            found.append((None, None))
            continue
        p50, p95 = (round(min(_EDGES[bisect_left(heights, q * heights[-1])], float(longest_s)), 1) for q in _QUANTILES)
        found.append((p50, p95))
    return found


def _charts(ranked: Ranking[dict[str, Any]], hours: list[tuple[float | None, float | None]], zone: str) -> list[Chart]:
    shown = ranked.groups[:SHOWN]
    series = [
        Series(name=name, role=role, y=[float(row["wait_s"][at]) for row in shown])
        for at, (name, role) in enumerate(_SERIES)
    ]
    bars = sideways(_GROUPS, ranked.names[:SHOWN], "s", series, of="Partition and size", stacked=False)
    lines = Lines(
        title=_HOURS,
        x=Axis(title="Hour of the day", unit=zone),
        y=Axis(title="Wait", unit="s", scale="log"),
        at=[float(hour) for hour in range(24)],
        series=[
            Series(name=name, role=role, y=[pair[at] for pair in hours]) for at, (name, role) in enumerate(_SERIES)
        ],
    )
    return [bars, lines]
