"""Jobs by day: submitted, started, ended by state, their steps, and the resources that they held."""

from collections.abc import Mapping
from typing import Any, Final

from gpuwaste.core.units import DAY_S, HOUR_S
from gpuwaste.show.chart import Axis, Bars, Chart, Series
from gpuwaste.show.view_document import Column, ViewFacts, ratio
from gpuwaste.slurm.accounting.job_record import MAX_STEPS
from gpuwaste.views.charting import CUT_NOTE, ENDS, RUNS_NOTE, end_series, gpus_note, some_of, step_axis, words
from gpuwaste.views.view_query import Answer, ViewQuery

TITLE: Final = "Jobs by day"
QUESTION: Final = "How many jobs are submitted, start and end each day, and how do they end?"
SENTENCES: Final = (
    "Submitted: {submitted}. Started: {started}. Ended: {ended}, {ended_by_day} per day.",
    "{completed_share} of the jobs that ended completed.",
    "The end state of {unknown_ends+} is unknown; the shares are without them.",
    "GPU jobs held {gpu_hours+}.",
    "Jobs held {cpu_hours}.",
    "Jobs ran {steps}, {steps_by_day} per day.",
)
_STEPS_NOTE: Final = (
    "Steps are those of srun that have ended, by the day of their start, at most {:,} per run; batch steps do not "
    "count."
)
_NO_STEPS_NOTE: Final = "Steps are unknown: the store has none from accounting."
_UNKNOWN_NOTE: Final = "Accounting lacks the {kind}s of {jobs}; {kind}-hours are without them."
_COLUMNS: Final = (
    Column(name="from", title="From", unit="UTC s"),
    Column(name="submitted", title="Submitted", unit="jobs"),
    Column(name="started", title="Started", unit="jobs"),
    Column(name="ended", title="Ended", unit="jobs"),
    *(Column(name=name, title=words(name).capitalize(), unit="jobs") for name in ENDS),
    Column(name="steps", title="Steps", unit="steps"),
    Column(name="gpu_hours", title="GPU-hours held", unit="GPU-hours"),
    Column(name="cpu_hours", title="CPU-hours held", unit="CPU-hours"),
)


_COUNTED: Final = ("submitted", "started", "ended")


def answer(asking: ViewQuery) -> Answer:
    """Query each day."""
    window = asking.window
    rows = asking.rows("jobs")
    known = asking.rows("steps_known")[0]["known"]
    steps = {row["bin"]: row["steps"] for row in asking.rows("steps")} if known else {}
    for row in rows:
        row["from"] = window.start + row["bin"] * window.step
        row["days"] = (min(row["from"] + window.step, window.end) - row["from"]) / DAY_S
        row["judged"] = row["ended"] - row["unknown"]
        row["steps"] = steps.get(row["bin"], 0) if known else None
        row["gpu_hours"], row["cpu_hours"] = row["gpu_s"] / HOUR_S, row["cpu_s"] / HOUR_S
    facts = ViewFacts("jobs")
    total = {name: sum(row[name] for row in rows) for name in (*_COUNTED, "completed", "unknown", "days")}
    for name in _COUNTED:
        facts.add(name, total[name], "jobs", f"jobs {name}")
    for name in ("submitted", "ended"):
        sample = ratio(rows, name, "days", window.blocks)
        facts.add(f"{name}_by_day", total[name] / total["days"], "jobs", f"jobs {name} per day", sample=sample)
    sample, judged = ratio(rows, "completed", "judged", window.blocks), total["ended"] - total["unknown"]
    facts.share("completed_share", total["completed"], judged, "share of ended jobs that completed", sample=sample)
    facts.add("unknown_ends", total["unknown"], "jobs", "jobs with an unknown end state")
    unknown = asking.rows("held_unknown")[0]
    no_cpus = 0 < unknown["runs"] == unknown["cpu"]
    for row in rows if no_cpus else ():
        row["cpu_hours"] = None
    for kind in ("gpu",) if no_cpus else ("gpu", "cpu"):
        held_s, unit = sum(row[f"{kind}_s"] for row in rows), f"{kind.upper()}-hours"
        facts.add(f"{kind}_hours", held_s / HOUR_S, unit, f"{unit} held")
        sample = ratio(rows, f"{kind}_hours", "days", window.blocks)
        facts.add(f"{kind}_hours_by_day", held_s / HOUR_S / total["days"], unit, f"{unit} held per day", sample=sample)
    if known:
        whole, sample = sum(steps.values()), ratio(rows, "steps", "days", window.blocks)
        facts.add("steps", whole, "steps", "steps of srun")
        facts.add("steps_by_day", whole / total["days"], "steps", "steps of srun per day", sample=sample)
    notes = [
        *gpus_note(rows),
        *_unknown_notes(unknown),
        RUNS_NOTE,
        CUT_NOTE,
        _STEPS_NOTE.format(MAX_STEPS) if known else _NO_STEPS_NOTE,
    ]
    table = [[row[column.name] for column in _COLUMNS] for row in rows]
    some = any(row[name] for row in rows for name in (*_COUNTED, "gpu_s", "cpu_s"))
    nothing = "" if some else "No job was submitted, ran or ended in this window."
    return Answer(facts, _COLUMNS, table, _charts(asking, rows), notes, nothing=nothing)


def _unknown_notes(unknown: Mapping[str, int]) -> list[str]:
    """Return notes: for how many jobs the CPUs are unknown, and the GPUs unless they are unknown for all."""
    kinds = [kind for kind in ("gpu", "cpu") if unknown[kind] and (kind == "cpu" or unknown[kind] < unknown["runs"])]
    return [_UNKNOWN_NOTE.format(kind=kind.upper(), jobs=some_of(unknown[kind], unknown["runs"])) for kind in kinds]


def _charts(asking: ViewQuery, rows: list[dict[str, Any]]) -> list[Chart]:
    at, axis = step_axis(asking.window)
    unit = "GPU-hours" if any(row["gpu_s"] for row in rows) else "CPU-hours"
    held = [row["gpu_hours" if unit == "GPU-hours" else "cpu_hours"] for row in rows]
    jobs = Axis(title="Jobs", unit="jobs")
    charts: list[Chart] = [
        Bars(title="Jobs that ended, by end state", x=axis, y=jobs, at=at, series=end_series(rows)),
    ]
    if None not in held:
        series = [Series(name="held", role="main", y=[round(value, 2) for value in held])]
        charts.append(Bars(title=f"{unit} held", x=axis, y=Axis(title=unit, unit=unit), at=at, series=series))
    if any(row["steps"] for row in rows):
        series = [Series(name="steps", role="main", y=[row["steps"] for row in rows])]
        charts.append(Bars(title="Steps of jobs", x=axis, y=Axis(title="Steps", unit="steps"), at=at, series=series))
    return charts
