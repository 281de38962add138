"""Charts with data as a cluster has them: one of each kind, drawn from a seed."""

import random
from datetime import UTC, datetime
from math import exp, log, log10

from gpuwaste.core.units import DAY_S
from gpuwaste.show.chart import Axis, Bars, Bins, Chart, Gantt, Grid, Layer, Lines, Role, Row, Series, Span

_START = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp())
_LEVELS: tuple[Role, ...] = ("high", "moderate", "low", "idle", "unknown")


def points(count: int, seed: int = 7) -> list[tuple[str, float, float]]:
    """Return end state, elapsed seconds and GPUs of jobs."""
    rng = random.Random(seed)  # noqa: S311 a figure is repeatable
    states = rng.choices(("completed", "failed", "timeout", "out_of_memory"), (70, 18, 9, 3), k=count)
    return [(state, _elapsed(rng, state), float(2 ** min(11, int(rng.expovariate(0.5))))) for state in states]


def bins(count: int = 100_000, columns: int = 96, rows: int = 64) -> Bins:
    """Return jobs on a grid of elapsed time and GPUs, by end state."""
    x_edges = [10 ** (5.5 * index / columns) for index in range(columns + 1)]
    y_edges = [10 ** (3.4 * index / rows) for index in range(rows + 1)]
    layers: dict[str, list[int]] = {}
    rng = random.Random(3)  # noqa: S311 a figure is repeatable
    for state, elapsed, gpus in points(count):
        column = min(columns - 1, int(log10(max(1.0, elapsed)) / 5.5 * columns))
        row = min(rows - 1, int(log10(gpus * exp(rng.gauss(0, 0.25)) + 1) / 3.4 * rows))
        layers.setdefault(state, [0] * (columns * rows))[row * columns + column] += 1
    return Bins(
        title="GPUs against elapsed time",
        x=Axis(title="elapsed", unit="s", scale="log"),
        y=Axis(title="GPUs", scale="log"),
        x_edges=x_edges,
        y_edges=y_edges,
        layers=[
            Layer(name=state.replace("_", " "), role=_role(state), counts=found) for state, found in layers.items()
        ],
    )


def stacked(days: int = 366) -> Bars:
    """Return GPU-hours by level and day."""
    rng = random.Random(5)  # noqa: S311 a figure is repeatable
    scale = dict(zip(_LEVELS, (2200, 700, 400, 900, 120), strict=True))
    return Bars(
        title="GPU-hours by level and day",
        x=Axis(title="day", scale="time"),
        y=Axis(title="allocated", unit="GPU-hours"),
        at=[_START + day * DAY_S for day in range(days)],
        series=[
            Series(
                name=level, role=level, y=[scale[level] * exp(rng.gauss(0, 0.3)) * _week(day) for day in range(days)]
            )
            for level in _LEVELS
        ],
    )


def wasters(count: int = 15) -> Bars:
    """Return the GPU-hours wasted of accounts."""
    rng = random.Random(11)  # noqa: S311 a figure is repeatable
    names = [
        f"{rng.choice(('bio', 'nlp', 'astro', 'climate'))}-{rng.choice(('lab', 'group-of-prof'))}-{i}"
        for i in range(count)
    ]
    return Bars(
        title="Top accounts by GPU-hours wasted",
        x=Axis(title="account", scale="category", categories=names),
        y=Axis(title="wasted", unit="GPU-hours"),
        at=list(range(count)),
        series=[
            Series(name="untouched", role="idle", y=[4000 / (i + 1) for i in range(count)]),
            Series(name="idle runs", role="low", y=[2500 / (i + 1.5) for i in range(count)]),
        ],
        sideways=True,
    )


def waits(days: int = 90) -> Lines:
    """Return the median wait by day with a band, and the 95th percentile."""
    rng = random.Random(13)  # noqa: S311 a figure is repeatable
    median: list[float | None] = [exp(rng.gauss(log(600), 0.5)) * _week(day) for day in range(days)]
    for day in range(40, min(days, 45)):
        median[day] = None
    return Lines(
        title="Wait in the queue by day of submission",
        x=Axis(title="submitted", scale="time"),
        y=Axis(title="wait", unit="s", scale="log"),
        at=[_START + day * DAY_S for day in range(days)],
        series=[
            Series(name="median", role="main", y=median),
            Series(
                name="95th percentile", role="second", y=[None if v is None else v * rng.uniform(6, 20) for v in median]
            ),
        ],
        low=[None if value is None else value * 0.6 for value in median],
        high=[None if value is None else value * 1.6 for value in median],
    )


def queue(days: int = 7) -> Grid:
    """Return the jobs that wait, by weekday and hour."""
    rng = random.Random(17)  # noqa: S311 a figure is repeatable
    names = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
    cells: list[float | None] = [
        max(0.0, rng.gauss(60, 25) * (2 if 9 <= hour <= 17 else 0.6)) if day < 5 else float(rng.choice((0, 0, 4, 9)))
        for day in range(days)
        for hour in range(24)
    ]
    cells[30:36] = [None] * 6
    return Grid(
        title="Jobs that wait, by weekday and hour",
        x=Axis(title="hour, UTC", scale="category"),
        y=Axis(title="weekday", scale="category"),
        columns=[f"{hour:02d}" for hour in range(24)],
        rows=names[:days],
        cells=cells,
        unit="jobs",
    )


def held(nodes: int = 16, count: int = 600) -> Gantt:
    """Return the jobs on the GPUs of some nodes over a day."""
    rng = random.Random(19)  # noqa: S311 a figure is repeatable
    free = {(node, gpu): float(_START) for node in range(nodes) for gpu in range(4)}
    spans = []
    for job in range(count):
        (node, gpu), start = min(free.items(), key=lambda item: item[1])
        end = free[node, gpu] = start + rng.uniform(600, 20_000)
        words = f"gpu{node} GPU {gpu}, waited {job % 9} h"
        shade = min(3, job % 9)
        name = f"job {4000 + job}"
        spans.append(Span(row=node, first=gpu, lanes=1, start=start, end=end, shade=shade, name=name, words=words))
    down = [(_START + 3600.0, _START + 40_000.0)]
    return Gantt(
        title="GPUs by job: slurm",
        x=Axis(title="", scale="time"),
        start=_START,
        end=_START + DAY_S,
        rows=[Row(name=f"gpu{node}", lanes=4, down=down if node == nodes - 1 else ()) for node in range(nodes)],
        spans=spans,
        shades=("waited under 1 min", "under 1 h", "under 6 h", "6 h and more"),
        note="Not drawn: 4 nodes.",
    )


def all_kinds(jobs: int = 100_000) -> dict[str, Chart]:
    """Return one chart of each kind by its name; the one of bins has so many jobs."""
    upright: dict[str, Chart] = {"bars": stacked(), "bars sideways": wasters(), "lines": waits()}
    return {**upright, "bins": bins(jobs), "grid": queue(), "gantt": held()}


def _elapsed(rng: random.Random, state: str) -> float:
    if state == "timeout":
        return rng.choice((3600.0, 14400.0, 86400.0))
    return float(min(10**5.4, exp(rng.gauss(log(2000 if state == "completed" else 120), 1.8))))


def _week(day: int) -> float:
    return 0.5 if day % 7 in {1, 2} else 1.0


def _role(state: str) -> Role:
    roles: dict[str, Role] = {
        "completed": "completed", "failed": "failed", "timeout": "timeout", "out_of_memory": "out_of_memory",
    }  # fmt: skip
    return roles[state]
