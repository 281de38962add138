"""Depth of the queue by day and hour."""

from typing import Final

from gpuwaste.core.bootstrap import BootstrapSample
from gpuwaste.core.units import HOUR_S
from gpuwaste.show.chart import Axis, Grid
from gpuwaste.show.view_document import Column, ViewFacts
from gpuwaste.views.charting import without_waits
from gpuwaste.views.ranking import Superlative, ranking
from gpuwaste.views.view_query import Answer, ViewQuery

TITLE: Final = "Depth of the queue"
QUESTION: Final = "How many jobs wait, by day and by hour of the day?"
SENTENCES: Final = (
    "On average {depth_mean} waited; in the fullest hour {depth_most} waited.",
    (
        "The queue is deepest in {deep_hour} of the day ({deep_hour_mean} on average) and emptiest in {shallow_hour} "
        "({shallow_hour_mean})."
    ),
)
DEEPEST: Final = Superlative("deep_hour", "deep_hour_mean", "table", "mean", labels=("hour",))
EMPTIEST: Final = Superlative("shallow_hour", "shallow_hour_mean", "table", "mean", labels=("hour",), least=True)
SUPERLATIVES: Final = (DEEPEST, EMPTIEST, Superlative("", "depth_most", "table", "most"))
_COLUMNS: Final = (
    Column(name="hour", title="Hour of the day", unit="h"),
    Column(name="mean", title="Mean waiting", unit="jobs"),
    Column(name="most", title="Most waiting", unit="jobs"),
)
_HOURS: Final = 24
_DAYS: Final = 92
"""Columns of the heat map; with longer windows several days share one."""


def answer(asking: ViewQuery) -> Answer:
    """Query each hour."""
    if unknown := without_waits(asking):
        return Answer(ViewFacts("without_waits"), _COLUMNS, [], [], [], nothing=unknown)
    window = asking.window
    rows = asking.rows("queue")
    lengths = [min(HOUR_S, window.end - window.start - row["hour"] * HOUR_S) for row in rows]
    depth = [row["waiting_s"] / length for row, length in zip(rows, lengths, strict=True)]
    first = (window.start + window.utc_offset_s) // HOUR_S
    per_column = -(-len(depth) // (_HOURS * _DAYS))
    columns = -(-(first % _HOURS + len(depth)) // (_HOURS * per_column))
    sums, counts = [[0.0] * columns for _ in range(_HOURS)], [[0] * columns for _ in range(_HOURS)]
    most = [0.0] * _HOURS
    for place, value in enumerate(depth):
        hour, column = (first + place) % _HOURS, (first % _HOURS + place) // (_HOURS * per_column)
        sums[hour][column] += value
        counts[hour][column] += 1
        most[hour] = max(most[hour], value)
    means = [sum(own) / sum(n) if sum(n) else None for own, n in zip(sums, counts, strict=True)]
    day = (first - first % _HOURS) * HOUR_S - window.utc_offset_s
    grid = Grid(
        title="Jobs that wait",
        x=Axis(title="Day" if per_column == 1 else f"{per_column} days per column", scale="time"),
        y=Axis(title=f"Hour of the day ({window.hour_text()})", scale="category"),
        columns=[float(day + place * per_column * _HOURS * HOUR_S) for place in range(columns)],
        rows=[f"{hour:02d}" for hour in range(_HOURS)],
        cells=[
            round(value / count, 2) if count else None
            for own, n in zip(sums, counts, strict=True)
            for value, count in zip(own, n, strict=True)
        ],
        unit="jobs",
    )
    table = [[hour, mean, most[hour]] for hour, mean in enumerate(means)]
    notes = [
        "A job waits from its submission to its start, or to its end if it never starts; held jobs count too.",
        "Each value is the mean over an hour.",
    ]
    nothing = "" if any(depth) else "No job waited in this window."
    return Answer(_facts(asking, depth, lengths, means), _COLUMNS, table, [grid], notes, nothing=nothing)


def _facts(asking: ViewQuery, depth: list[float], lengths: list[int], means: list[float | None]) -> ViewFacts:
    window, facts = asking.window, ViewFacts("queue")
    blocks: list[list[float]] = [[0.0, 0.0] for _ in range(window.blocks)]
    for place, (value, length) in enumerate(zip(depth, lengths, strict=True)):
        if blocks:
            block = blocks[place * HOUR_S // window.block]
            block[0] += value * length
            block[1] += length
    waiting = sum(value * length for value, length in zip(depth, lengths, strict=True))
    mean = waiting / sum(lengths) if lengths else None
    facts.add("depth_mean", mean, "jobs", "mean number of waiting jobs", sample=BootstrapSample(blocks=blocks))
    facts.add("depth_most", max(depth, default=None), "jobs", "waiting jobs in the fullest hour")
    known = [(hour, f"hour {hour}", value) for hour, value in enumerate(means) if value is not None]
    if len(known) == _HOURS:
        for what, name in ((DEEPEST, "deepest"), (EMPTIEST, "emptiest")):
            text = f"hour of the day with the {name} queue ({window.hour_text()})"
            ranked = ranking(known, least=what.least)
            ranked.add(facts, what, "jobs", (text, "mean number of waiting jobs at that hour"), some=False)
    return facts
