"""The runs of one cluster as columns of numbers: how a history of a million runs leaves the store in seconds.

The columns are NumPy arrays (extra `predict`), made by DuckDB without a Python object for each row.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from gpuwaste.core.job_event import EndRule
from gpuwaste.core.underuse import UnderUse
from gpuwaste.store.database import Database

FAR_S: Final = 2**53


@dataclass(frozen=True, slots=True)
class JobColumns:
    """n runs by (submit, job_id, start): `numbers` maps a column of the query job_table to its array [n].

    Of a text column the numbers are codes; `texts` maps it to the texts by code, in the order of first occurrence.
    `end_rule` says how the ends are known: "submit + run" of a log without waits. `last_event` is the newest event of
    the history stream that the columns have in them.
    """

    numbers: Mapping[str, Any]
    texts: Mapping[str, tuple[str, ...]]
    last_event: int
    end_rule: EndRule = "accounting"
    energy: Mapping[str, Any] | None = None
    """Columns of the query job_energy [n], where they were asked for; of gpu_type texts, not codes."""


def job_columns(db: Database, cluster: str, under_use: UnderUse, *, energy: bool = False) -> JobColumns:
    """Read every run of a cluster and what the ledger says of it by a rule, as of one instant. Raises StoreError."""
    with db.transaction():
        last_event = int(db.rows("last_event")[0]["seq"])
        rules = db.rows("job_end_rule", {"cluster": cluster})
        db.run("job_table_pick", {"cluster": cluster})
        db.run("job_table_texts")
        texts: dict[str, list[str]] = {
            kind: [] for kind in ("user", "account", "partition", "qos", "name", "req_tres", "state")
        }
        for kind, text in db.run("job_table_values").fetchall():
            texts[kind].append(text)
        found = db.run("job_table", {"from_hour": 0, "to_hour": FAR_S, "active_pct": under_use.below_pct}).fetchnumpy()
        joules = db.run("job_energy").fetchnumpy() if energy else None
        db.run("job_table_drop")
    values = {kind: tuple(found_texts) for kind, found_texts in texts.items()}
    assumed = bool(rules) and rules[0]["end_rule"] == "submit + run"
    return JobColumns(found, values, last_event, "submit + run" if assumed else "accounting", joules)


def clusters(db: Database) -> list[str]:
    """Return the clusters of which the store has runs."""
    return [row["cluster"] for row in db.rows("job_clusters")]
