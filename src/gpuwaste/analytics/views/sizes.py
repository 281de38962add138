"""Nodes or GPUs against elapsed time, by end state."""

from typing import Final

from gpuwaste.analytics.answer import Answer
from gpuwaste.analytics.asking import Asking
from gpuwaste.analytics.chart import Axis, Chart
from gpuwaste.analytics.charting import (
    ENDS,
    RUNS_NOTE,
    binned,
    columns_needed,
    decade_edges,
    gpus_note,
    size_text,
    words,
)
from gpuwaste.analytics.document import Column
from gpuwaste.analytics.facts import Facts
from gpuwaste.core.units import HOUR_S

TITLE: Final = "Size against run time"
QUESTION: Final = "How large are the jobs, how long do they run, and how do they end?"
SENTENCES: Final = (
    "{runs} ran and ended; {largest_class_share} of them asked for {largest_class}.",
    "Most time goes to jobs of {heavy_class}: {heavy_share}.",
)
_COLUMNS: Final = (
    Column(name="size", title="Size"),
    Column(name="runs", title="Jobs", unit="jobs"),
    Column(name="mean_s", title="Mean run time", unit="s"),
    Column(name="gpu_hours", title="GPU-hours", unit="GPU-hours"),
    *(Column(name=name, title=words(name).capitalize(), unit="jobs") for name in ENDS),
)
_KINDS: Final = ("gpus", "nodes", "cpus")
_TITLES: Final = {"gpus": "GPUs", "nodes": "Nodes", "cpus": "CPUs"}


def answer(asking: Asking) -> Answer:
    """Ask for the bins."""
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
            size_text(_KINDS[kind], level), entry["runs"], entry["elapsed_s"] / entry["runs"], entry["gpu_s"] / HOUR_S,
            *(entry[name] for name in ENDS),
        ]
        for (kind, level), entry in sorted(classes.items())
    ]  # fmt: skip
    notes = [
        *gpus_note(rows),
        RUNS_NOTE,
        "Jobs that ended in the window after they had started; a job counts by its GPUs where it has any.",
    ]
    return Answer(_facts(classes), _COLUMNS, table, _charts(rows), notes)


def _facts(classes: dict[tuple[int, int], dict[str, int]]) -> Facts:
    facts = Facts("sizes")
    runs = sum(entry["runs"] for entry in classes.values())
    facts.add("runs", runs, "jobs", "jobs that ran and ended")
    if classes:
        of = "gpu_s" if any(entry["gpu_s"] for entry in classes.values()) else "elapsed_s"
        for name, by in (("largest", "runs"), ("heavy", of)):
            (kind, level), entry = max(classes.items(), key=lambda item: (item[1][by], item[0]))
            means = "most jobs" if name == "largest" else "most held time"
            facts.add(f"{name}_class", size_text(_KINDS[kind], level), "", f"size with {means}")
            whole = sum(other[by] for other in classes.values())
            facts.share(
                f"{name}_{'class_' if name == 'largest' else ''}share", entry[by], whole, f"its share of {means}"
            )
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
        axes = Axis(title="Run time", unit="s", scale="log"), Axis(title=title, unit=title, scale="log")
        heights = [0.5, *(2.0**level for level in range(levels))]
        charts.append(binned(f"{title} against run time", axes, cells, (decade_edges(columns), heights)))
    return charts
