"""End states by user and account."""

from collections import Counter
from typing import Any, Final

from gpuwaste.show.chart import Chart, Series
from gpuwaste.show.view_document import Cell, Column, ViewFacts, ratio
from gpuwaste.views.charting import ENDS, RUNS_NOTE, end_series, named, sideways, user_words, without_details, words
from gpuwaste.views.ranking import SHOWN, LostShare, Ranking, Superlative, ranking
from gpuwaste.views.view_query import MAX_ROWS, Answer, ViewQuery

TITLE: Final = "End states by user and account"
QUESTION: Final = "How do jobs end, and whose jobs fail?"
SENTENCES: Final = (
    "Of the {judged} that ended, {failed_share} failed.",
    "{cancelled_share+} of them were cancelled.",
    "{timeout_share} of the jobs reached their time limit.",
    "The end state of {unknown_states+} is unknown; the shares are without them.",
    "User {top_user} had the most failed jobs: {top_user_failed}, {top_user_share} of all that failed.",
)
_FAILED: Final = "Failed jobs by user"
MOST_FAILED: Final = Superlative("top_user", "top_user_failed", "bars", _FAILED, share="top_user_share")
SUPERLATIVES: Final = (MOST_FAILED,)
FINDING: Final = LostShare("failed_share", "jobs")
_COLUMNS: Final = (
    Column(name="user", title="User"),
    Column(name="account", title="Account"),
    Column(name="ended", title="Ended", unit="jobs"),
    *(Column(name=name, title=words(name).capitalize(), unit="jobs") for name in ENDS),
    Column(name="failed_share", title="Failed share", unit="share"),
)


_SILENT: Final = frozenset({"timeout", "out_of_memory", "node_fail"})
"""Columns that are unknown for a log without names for these states."""


def answer(asking: ViewQuery) -> Answer:
    """Query users and days."""
    rows, days, silent = asking.rows("states"), asking.rows("states_blocks"), without_details(asking)
    facts, blocks = ViewFacts("states"), asking.window.blocks
    ended, unknown = (sum(row[name] for row in rows) for name in ("ended", "unknown"))
    facts.add("ended", ended, "jobs", "jobs that ended")
    facts.add("judged", ended - unknown, "jobs", "jobs with a known end state")
    facts.add("unknown_states", unknown, "jobs", "jobs with an unknown end state")
    for day in days:
        day["failed"] += day["out_of_memory"]
        day["judged"] = day["ended"] - day["unknown"]
    for name, means in (("failed", "failed"), ("timeout", "reached their time limit"), ("cancelled", "were cancelled")):
        if name == "timeout" and silent:
            continue
        part, sample = sum(day[name] for day in days), ratio(days, name, "judged", blocks)
        facts.share(f"{name}_share", part, ended - unknown, f"share of jobs that {means}", sample=sample)
    users: Counter[str] = Counter()
    for row in rows:
        judged, row["lost"] = row["ended"] - row["unknown"], row["failed"] + row["out_of_memory"]
        row["failed_share"] = row["lost"] / judged if judged else None
        users[row["user"]] += row["lost"]
    facts.add("users", len(users), "users", "users whose jobs ended")
    ranked = ranking((user, named(user, "user"), lost) for user, lost in users.items() if lost)
    told = (
        "user with the most failed jobs",
        "failed jobs of that user",
        "share of that user in all failed jobs",
    )
    ranked.add(facts, MOST_FAILED, "jobs", told, unnamed=named("", "user"))
    table = [[_cell(row, column.name, silent) for column in _COLUMNS] for row in rows[:MAX_ROWS]]
    notes = [RUNS_NOTE, "Only jobs that ended in the window count. Failed includes out of memory."]
    if silent:
        notes.append(
            f"The log of {silent} does not record which jobs a time limit, a failed node or used-up memory ended."
        )
    left_out, nothing = max(0, len(rows) - MAX_ROWS), "" if ended else "No job ended in this window."
    return Answer(facts, _COLUMNS, table, _charts(rows, ranked), notes, rows_left_out=left_out, nothing=nothing)


def _cell(row: dict[str, Any], name: str, silent: str) -> Cell:
    return None if silent and name in _SILENT else row[name]


def _charts(rows: list[dict[str, Any]], ranked: Ranking[str]) -> list[Chart]:
    shown = rows[:SHOWN]
    names = [user_words(row["user"], row["account"]) for row in shown]
    charts: list[Chart] = [sideways("Jobs by end state", names, "jobs", end_series(shown), of="User and account")]
    if ranked.names:
        failed = Series(name="failed", role="failed", y=[float(lost) for lost in ranked.values[:SHOWN]])
        charts.append(sideways(_FAILED, ranked.names[:SHOWN], "jobs", [failed], of="User"))
    return charts
