"""The share of array, interactive and short jobs."""

from typing import Final

from gpuwaste.core.units import HOUR_S
from gpuwaste.show.chart import Series
from gpuwaste.show.view_document import Column, ViewFacts, duration_text, ratio
from gpuwaste.views.charting import NONE_ENDED, RUNS_NOTE, gpus_note, sideways, without_details
from gpuwaste.views.ranking import Superlative, ranking
from gpuwaste.views.view_query import Answer, ViewQuery

TITLE: Final = "Kinds of jobs"
QUESTION: Final = "How many jobs are array tasks, interactive or short?"
SENTENCES: Final = (
    "{top_kind_share} of the {runs} that ran and ended were {top_kind}.",
    (
        "{array_share} of the jobs were array tasks; {interactive_share} of the jobs were interactive; "
        "{short_share} of the jobs were short."
    ),
    "Short jobs held {short_gpu_share+} of the GPU-hours.",
    "Interactive jobs held {interactive_gpu_share+} of the GPU-hours.",
)
LARGEST: Final = Superlative("top_kind", "top_kind_share", "table", "share", labels=("kind",))
SUPERLATIVES: Final = (LARGEST,)
SHORT_S: Final = 300
_KINDS: Final = {"array": "array tasks", "interactive": "interactive jobs", "short": "short jobs"}
_COLUMNS: Final = (
    Column(name="kind", title="Kind"),
    Column(name="runs", title="Jobs", unit="jobs"),
    Column(name="share", title="Share of jobs", unit="share"),
    Column(name="gpu_hours", title="GPU-hours", unit="GPU-hours"),
    Column(name="gpu_share", title="Share of GPU-hours", unit="share"),
)


def answer(asking: ViewQuery) -> Answer:
    """Query each day."""
    rows = asking.rows("kinds", short_s=SHORT_S)
    silent, facts, blocks = without_details(asking), ViewFacts("kinds"), asking.window.blocks
    kinds = {name: text for name, text in _KINDS.items() if name == "short" or not silent}
    whole = {name: sum(row[name] for row in rows) for name in ("runs", "gpu_s")}
    facts.add("runs", whole["runs"], "jobs", "jobs that ran and ended")
    columns = _COLUMNS if whole["gpu_s"] else _COLUMNS[:3]
    table: list[list[str | int | float | None]] = []
    totals: dict[str, int] = {}
    for name, text in kinds.items():
        runs, gpu_s = sum(row[f"{name}_runs"] for row in rows), sum(row[f"{name}_gpu_s"] for row in rows)
        facts.share(
            f"{name}_share", runs, whole["runs"], f"share of jobs that are {text}",
            sample=ratio(rows, f"{name}_runs", "runs", blocks),
        )  # fmt: skip
        facts.share(
            f"{name}_gpu_share", gpu_s, whole["gpu_s"], f"share of the GPU-hours that {text} hold",
            sample=ratio(rows, f"{name}_gpu_s", "gpu_s", blocks),
        )  # fmt: skip
        totals[text] = runs
        shares = [part / of if of else None for part, of in ((runs, whole["runs"]), (gpu_s, whole["gpu_s"]))]
        table.append([text, runs, shares[0], gpu_s / HOUR_S, shares[1]][: len(columns)])
    by_share = ranking((text, text, runs / whole["runs"]) for text, runs in totals.items() if whole["runs"])
    means = "kind of most jobs", "share of jobs that are of this kind"
    by_share.add(facts, LARGEST, "share", means, some=not silent)
    series = [Series(name="share of jobs", role="main", y=[_percent(row[2]) for row in table])]
    if whole["gpu_s"]:
        series.append(Series(name="share of GPU-hours", role="second", y=[_percent(row[4]) for row in table]))
    chart = sideways("Kinds of jobs", list(kinds.values()), "%", series, of="Kind", stacked=False)
    short = f"A short job runs for less than {duration_text(SHORT_S)}."
    notes = [
        *gpus_note(rows),
        RUNS_NOTE,
        f"Only jobs that started and have ended count; one job may be of several kinds. {short}",
    ]
    if silent:
        notes.append(f"The log of {silent} does not record which jobs were array tasks or interactive.")
    nothing = "" if whole["runs"] else NONE_ENDED
    return Answer(facts, columns, table, [chart], notes, parameters={"short_s": SHORT_S}, nothing=nothing)


def _percent(share: str | float | None) -> float | None:
    return round(share * 100, 2) if isinstance(share, int | float) else None
