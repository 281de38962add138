"""Nodes or GPUs against elapsed time, by end state."""

from typing import Final

from gpuwaste.core.units import HOUR_S
from gpuwaste.show.chart import Axis, Chart
from gpuwaste.show.view_document import Column, ViewFacts
from gpuwaste.views.charting import (
    ENDS,
    NONE_ENDED,
    RUNS_NOTE,
    binned,
    columns_needed,
    decade_edges,
    gpus_note,
    size_range,
    size_text,
    words,
)
from gpuwaste.views.ranking import Superlative, ranking
from gpuwaste.views.view_query import Answer, ViewQuery

TITLE: Final = "Size against run time"
QUESTION: Final = "How large are the jobs, how long do they run, and how do they end?"
SENTENCES: Final = (
    "{runs} ran and ended; the most frequent size is {largest_class}: {largest_class_share} of the jobs.",
    "Jobs of {heavy_gpu_class} held the most GPU-hours: {heavy_gpu_share} of the GPU-hours.",
    "Jobs of {heavy_class} had the most run time: {heavy_share} of the run time of all jobs.",
)
MOST_JOBS: Final = Superlative("largest_class", "", "table", "runs", labels=("size",), share="largest_class_share")
MOST_GPU_HOURS: Final = Superlative(
    "heavy_gpu_class", "", "table", "gpu_hours", labels=("size",), share="heavy_gpu_share"
)
MOST_TIME: Final = Superlative("heavy_class", "", "table", "run_hours", labels=("size",), share="heavy_share")
SUPERLATIVES: Final = (MOST_JOBS, MOST_GPU_HOURS, MOST_TIME)
_COLUMNS: Final = (
    Column(name="size", title="Size"),
    Column(name="runs", title="Jobs", unit="jobs"),
    Column(name="mean_s", title="Mean run time", unit="s"),
    Column(name="run_hours", title="Run time", unit="h"),
    Column(name="gpu_hours", title="GPU-hours", unit="GPU-hours"),
    *(Column(name=name, title=words(name).capitalize(), unit="jobs") for name in ENDS),
)
_KINDS: Final = ("gpus", "nodes", "cpus")
_TITLES: Final = {"gpus": "GPUs", "nodes": "Nodes", "cpus": "CPUs"}


def answer(asking: ViewQuery) -> Answer:
    """Query the bins."""
    rows = asking.rows("sizes")
    classes: dict[tuple[int, int], dict[str, int]] = {}
    for row in rows:
        entry = classes.setdefault(
            (_KINDS.index(row["kind"]), row["level"]), {"runs": 0, "elapsed_s": 0, "gpu_s": 0, **dict.fromkeys(ENDS, 0)}
        )
        for name in ("runs", "elapsed_s", "gpu_s"):
            entry[name] += row[name]
        entry[row["ended"]] += row["runs"]
    table: list[list[str | int | float | None]] = [
        [
            size_text(_KINDS[kind], level), entry["runs"], entry["elapsed_s"] / entry["runs"],
            entry["elapsed_s"] / HOUR_S, entry["gpu_s"] / HOUR_S,
            *(entry[name] for name in ENDS),
        ]
        for (kind, level), entry in sorted(classes.items())
    ]  # fmt: skip
    notes = [
        *gpus_note(rows),
        RUNS_NOTE,
        "Only jobs that started and have ended count, by their GPUs where they have any.",
    ]
    return Answer(_facts(classes), _COLUMNS, table, _charts(rows), notes, nothing="" if rows else NONE_ENDED)


def _facts(classes: dict[tuple[int, int], dict[str, int]]) -> ViewFacts:
    facts = ViewFacts("sizes")
    runs = sum(entry["runs"] for entry in classes.values())
    facts.add("runs", runs, "jobs", "jobs that ran and ended")
    for what, by, text in (
        (MOST_JOBS, "runs", "jobs"),
        (MOST_GPU_HOURS, "gpu_s", "GPU-hours"),
        (MOST_TIME, "elapsed_s", "run time"),
    ):
        ranked = ranking((key, size_text(_KINDS[key[0]], key[1]), entry[by]) for key, entry in classes.items())
        means = f"size with the most {text}", "", f"share of the {text} that jobs of that size have"
        ranked.add(facts, what, "", means)
    return facts


def _charts(rows: list[dict[str, int | str]]) -> list[Chart]:
    charts: list[Chart] = []
    for kind in _KINDS:
        own = [row for row in rows if row["kind"] == kind]
        if not own:
            continue
        columns = columns_needed(max(int(row["x"]) for row in own))
        levels = max(int(row["level"]) for row in own) + 1
        cells = (
            (words(str(row["ended"])), ENDS[str(row["ended"])], int(row["x"]), int(row["level"]), int(row["runs"]))
            for row in own
        )
        title = _TITLES[kind]
        names = [size_range(level) for level in range(levels)]
        axes = Axis(title="Run time", unit="s", scale="log"), Axis(title=title, scale="category", categories=names)
        heights = [0.5, *(2.0**level for level in range(levels))]
        charts.append(binned(f"{title} against run time", axes, cells, (decade_edges(columns), heights)))
    return charts
