"""The jobs that ran on a run's nodes at the same time: those of others are counted for whoever may not see them."""

from collections.abc import Collection
from typing import Final

from gpuwaste.core.errors import ParseError
from gpuwaste.core.scope import ClusterAccount, account_rows
from gpuwaste.ledger.reports.report_types import Neighbour, Neighbours
from gpuwaste.slurm.accounting.job import JobRecord
from gpuwaste.slurm.formats.hostlist import expand
from gpuwaste.store.database import Database

_MOST: Final = 50
_MOST_NODES: Final = 8  # of a neighbour: what is beyond is not named
_MOST_LISTS: Final = 20_000


def neighbours_of(
    db: Database, run: JobRecord, now: int, *, accounts: Collection[ClusterAccount] | None, reader: str | None
) -> Neighbours | None:
    """Return the neighbours of a run; None where it has not started or its nodes are not known.

    `accounts` and `reader` say whose runs are listed, as they do for a job: None is all accounts.
    """
    own = frozenset(_names(run.nodes))
    if run.start is None or not own:
        return None
    (first_open,) = db.run("neighbour_open").fetchall()[0]
    asked = {"cluster": run.cluster, "from_s": run.start, "to_s": run.end or now + 1, "open_from": first_open}
    lists = [row["nodes"] for row in db.rows("neighbour_lists", {**asked, "most": _MOST_LISTS})]
    shared = {text: sorted(own.intersection(_names(text))) for text in lists}
    wanted = [text for text, nodes in shared.items() if nodes]
    scope = {"accounts": account_rows(accounts), "reader": reader}
    key = {"job_id": run.job_id, "run_start": run.run_key.start}
    rows = db.rows("neighbour_runs", {**asked, **scope, **key, "lists": wanted, "most": _MOST})
    return Neighbours(
        printed_id=run.printed_id,
        runs=rows[0]["runs"] if rows else 0,
        others=rows[0]["others"] if rows else 0,
        complete=len(lists) < _MOST_LISTS,
        listed=[
            Neighbour(
                printed_id=row["printed_id"],
                name=row["name"],
                user=row["user"],
                state=row["state"],
                start=row["start"],
                end=row["end"],
                gpus=row["gpus"],
                nodes=shared[row["nodes"]][:_MOST_NODES],
            )
            for row in rows
            if row["visible"]
        ],
    )


def _names(text: str) -> list[str]:
    """Return the nodes of a hostlist; none of one that cannot be read."""
    if "[" not in text and "," not in text:
        return [text] if text else []
    try:
        return expand(text)
    except ParseError:
        return []
