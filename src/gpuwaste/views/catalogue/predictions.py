"""Actual against predicted run time."""

from typing import Final

from gpuwaste.core.units import DAY_S
from gpuwaste.show.chart import Axis, Chart, Role
from gpuwaste.show.view_document import Column, ViewFacts, ratio
from gpuwaste.views.charting import RUNS_NOTE, binned, columns_needed, decade_edges
from gpuwaste.views.view_query import Answer, ViewQuery

TITLE: Final = "Predicted and actual run time"
QUESTION: Final = "How good are the run times that the advisor predicts?"
SENTENCES: Final = (
    (
        "{runs} have a prediction: {below_q50_share} of them ended within the predicted median (half should), "
        "{below_q90_share} of them within the predicted upper bound (nine in ten should)."
    ),
    "On average the predicted median is wrong by {miss_share} of the run time.",
)
_MAIN: Final[Role] = "main"
_COLUMNS: Final = (
    Column(name="from", title="From", unit="UTC s"),
    Column(name="runs", title="Jobs", unit="jobs"),
    Column(name="below_q50", title="Within the median", unit="jobs"),
    Column(name="below_q90", title="Within the upper bound", unit="jobs"),
)


def answer(asking: ViewQuery) -> Answer:
    """Query days and bins of the runs that have a verdict with a predicted run time."""
    asking.answer("predicted")
    rows, bins = asking.rows("predictions"), asking.rows("predictions_bins")
    window, facts = asking.window, ViewFacts("predictions")
    whole = {name: sum(row[name] for row in rows) for name in ("runs", "below_q50", "below_q90", "miss_s", "elapsed_s")}
    facts.add("runs", whole["runs"] or None, "jobs", "jobs with a predicted run time that ended")
    for name, part, of, means in (
        ("below_q50_share", "below_q50", "runs", "share of jobs that ended within the predicted median"),
        ("below_q90_share", "below_q90", "runs", "share of jobs that ended within the predicted 90th percentile"),
        ("miss_share", "miss_s", "elapsed_s", "mean error of the median over the run time"),
    ):
        facts.share(name, whole[part], whole[of], means, sample=ratio(rows, part, of, window.blocks))
    charts: list[Chart] = []
    if bins:
        edges = decade_edges(columns_needed(max(max(row["x"], row["y"]) for row in bins)))
        cells = (("jobs", _MAIN, row["x"], row["y"], row["runs"]) for row in bins)
        axes = Axis(title="Predicted median", unit="s", scale="log"), Axis(title="Run time", unit="s", scale="log")
        charts = [binned("Actual against predicted run time", axes, cells, (edges, edges), diagonal=True)]
    first = window.start
    table = [[first + r["block"] * window.block, r["runs"], r["below_q50"], r["below_q90"]] for r in rows]
    notes = [RUNS_NOTE, f"Each row covers {window.block // DAY_S} days; a job at its time limit counts with the limit."]
    if not rows:
        reason = "None of these jobs has a predicted run time: the store has no verdicts of an advisor on them."
        return Answer(facts, _COLUMNS, [], [], [], nothing=reason)
    return Answer(facts, _COLUMNS, table, charts, notes)
