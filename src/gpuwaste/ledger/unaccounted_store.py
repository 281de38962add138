"""What the store knows of hours whose runs accounting does not have, or has on other nodes."""

from collections.abc import Collection
from dataclasses import dataclass

from gpuwaste.core.errors import ParseError
from gpuwaste.slurm.formats.hostlist import expand
from gpuwaste.slurm.run import RunKey
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.store.hub.json_rows import to_json


@dataclass(frozen=True, slots=True)
class KnownRun:
    """A run as accounting has it: its end in UTC seconds, None while it runs; whether it was on the node asked for."""

    end: int | None
    here: bool


class UnaccountedStore:
    """Asks and prunes one hub's store; for any thread."""

    def __init__(self, store: HubStore) -> None:
        self._store = store

    def known(self, runs: Collection[RunKey], node: str) -> dict[RunKey, KnownRun]:
        """Return those of the runs that accounting has, and whether they were on the node."""
        rows = [{"cluster": run.cluster, "job_id": run.job_id, "run_start": run.start} for run in runs]
        with self._store.reader() as db:
            return {
                RunKey(row["cluster"], row["job_id"], row["run_start"]): KnownRun(
                    row["end"], _names(row["nodes"], node)
                )
                for row in db.rows("runs_known", {"runs": to_json(rows)})
            }

    def hours_of(self, node: str) -> int:
        """Return how many hours the node has sent of runs that accounting does not have there."""
        with self._store.reader() as db:
            rows = db.rows("hours_of_node", {"node": node})
        return sum(row["hours"] for row in rows if row["nodes"] is None or not _names(row["nodes"], node))

    def prune(self, before: int) -> int:
        """Remove hours before a UTC second whose runs accounting does not have; returns how many."""
        with self._store.writing() as db:
            return int(db.run("hours_prune", {"before": before}).fetchall()[0][0])


def _names(nodes: str, node: str) -> bool:
    try:
        return node in expand(nodes)
    except ParseError:
        return False
