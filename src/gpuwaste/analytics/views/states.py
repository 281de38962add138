"""End states by user and account."""

from typing import Final

from gpuwaste.analytics.answer import MAX_ROWS, Answer
from gpuwaste.analytics.asking import Asking
from gpuwaste.analytics.charting import ENDS, RUNS_NOTE, end_series, holder, sideways, words
from gpuwaste.analytics.document import Column
from gpuwaste.analytics.facts import Facts, ratio

TITLE: Final = "End states by user and account"
QUESTION: Final = "How do jobs end, and whose jobs fail?"
SENTENCES: Final = (
    (
        "Of {ended} that ended, {failed_share} failed, {timeout_share} reached their time limit and "
        "{cancelled_share} were cancelled."
    ),
    "Of {users}, {top_user} has the most failed jobs: {top_user_failed}, {top_user_share} of all that failed.",
)
_COLUMNS: Final = (
    Column(name="user", title="User"),
    Column(name="account", title="Account"),
    Column(name="ended", title="Ended", unit="jobs"),
    *(Column(name=name, title=words(name).capitalize(), unit="jobs") for name in ENDS),
    Column(name="failed_share", title="Failed", unit="share"),
)
_SHOWN: Final = 20


def answer(asking: Asking) -> Answer:
    """Ask for users and for days."""
    rows, days = asking.rows("states"), asking.rows("states_blocks")
    facts, blocks = Facts("states"), asking.window.blocks
    ended = sum(row["ended"] for row in rows)
    facts.add("ended", ended, "jobs", "jobs that ended")
    for day in days:
        day["failed"] += day["out_of_memory"]
    for name, means in (("failed", "failed"), ("timeout", "reached their time limit"), ("cancelled", "were cancelled")):
        part = sum(day[name] for day in days)
        facts.share(
            f"{name}_share", part, ended, f"share of jobs that {means}", sample=ratio(days, name, "ended", blocks)
        )
    users: dict[str, int] = {}
    for row in rows:
        row["lost"] = row["failed"] + row["out_of_memory"]
        row["failed_share"] = row["lost"] / row["ended"]
        users[row["user"]] = users.get(row["user"], 0) + row["lost"]
    facts.add("users", len(users), "users", "users whose jobs ended")
    if any(users.values()):
        lost, user = max((lost, user) for user, lost in users.items())
        facts.add("top_user", user, "", "user with the most failed jobs")
        facts.add("top_user_failed", lost, "jobs", "failed jobs of that user")
        facts.share("top_user_share", lost, sum(users.values()), "share of the failed jobs that are that user's")
    shown = rows[:_SHOWN]
    names = [holder(row["user"], row["account"]) for row in shown]
    chart = sideways("Jobs by end state", names, "jobs", end_series(shown), of="User and account")
    table = [[row[column.name] for column in _COLUMNS] for row in rows[:MAX_ROWS]]
    notes = [RUNS_NOTE, "Jobs that ended in the window. Failed includes out of memory."]
    return Answer(facts, _COLUMNS, table, [chart], notes, rows_left_out=max(0, len(rows) - MAX_ROWS))
