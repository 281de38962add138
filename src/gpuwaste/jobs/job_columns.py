"""The runs of one cluster as columns of numbers: how a history of a million runs leaves the store in seconds.

The columns are NumPy arrays (extra `predict`), made by DuckDB without a Python object for each row.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from gpuwaste.core.underuse import UnderUse
from gpuwaste.jobs.job_event import EndRule
from gpuwaste.store.database import Database
from gpuwaste.store.hub.json_rows import to_json

FAR_S: Final = 2**53
SLICE_RUNS: Final = 100_000  # of whose GPUs is read at a time


@dataclass(frozen=True, slots=True)
class JobColumns:
    """Runs by (submit, job_id, start): each slice of `numbers` maps a column of the query job_table to its array [n].

    Of a text column the numbers are codes; `texts` maps it to the texts by code, in the order of first occurrence.
    `end_rule` says how the ends are known: "submit + run" of a log without waits.
    """

    numbers: Sequence[dict[str, Any]]
    texts: Mapping[str, tuple[str, ...]]
    end_rule: EndRule = "accounting"
    energy: Mapping[str, Any] | None = None
    """Columns of the query job_energy [n], where they were asked for; of gpu_type texts, not codes."""


@dataclass(frozen=True, slots=True)
class Submitted:
    """Which runs: those submitted in [since, until), UTC seconds, and of earlier ones some of `held`.

    `held` are (job id, submission, whether it has ended); of those that have ended the ones are taken of whose GPUs the
    hub has learned since. By default every run.
    """

    since: int = -FAR_S
    until: int = FAR_S
    held: Iterable[tuple[int, int, bool]] = ()


EVERY_RUN: Final = Submitted()


def last_event(db: Database) -> int:
    """Return the number of the newest event of the history stream, 0 without any. Raises StoreError."""
    return int(db.rows("last_event")[0]["seq"])


def submissions(db: Database, cluster: str) -> list[tuple[int, int]]:
    """Return each hour with submissions of a cluster: its begin, UTC seconds, and how many. Raises StoreError."""
    return db.run("job_submissions", {"cluster": cluster}).fetchall()


def job_columns(
    db: Database, cluster: str, under_use: UnderUse, which: Submitted = EVERY_RUN, *, energy: bool = False
) -> JobColumns:
    """Read runs of a cluster and what the ledger says of them by a rule, within a transaction. Raises StoreError."""
    rules = db.rows("job_end_rule", {"cluster": cluster})
    held = to_json({"job_id": job_id, "submit": at, "ended": ended} for job_id, at, ended in which.held)
    db.run("job_table_pick", {"cluster": cluster, "since": which.since, "until": which.until, "held": held})
    db.run("job_table_texts")
    texts: dict[str, list[str]] = {
        kind: [] for kind in ("user", "account", "partition", "qos", "name", "req_tres", "state")
    }
    for kind, text in db.run("job_table_values").fetchall():
        texts[kind].append(text)
    found = _numbers(db, under_use)
    joules = db.run("job_energy").fetchnumpy() if energy else None
    db.run("job_table_drop")
    values = {kind: tuple(found_texts) for kind, found_texts in texts.items()}
    assumed = bool(rules) and rules[0]["end_rule"] == "submit + run"
    return JobColumns(found, values, "submit + run" if assumed else "accounting", joules)


def _numbers(db: Database, under_use: UnderUse) -> list[dict[str, Any]]:
    """Return the columns of the picked runs in slices: there is no room for what was seen of a million runs."""
    runs = int(db.rows("job_table_count")[0]["runs"])
    limits = {"from_hour": 0, "to_hour": FAR_S, "active_pct": under_use.below_pct}
    return [
        db.run("job_table", {**limits, "first": first, "last": first + SLICE_RUNS}).fetchnumpy()
        for first in range(0, max(runs, 1), SLICE_RUNS)
    ]


def clusters(db: Database) -> list[str]:
    """Return the clusters of which the store has runs."""
    return [row["cluster"] for row in db.rows("job_clusters")]
