"""Source of waste.finding: the causes of judged runs, from the hub's first check on."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from gpuwaste.act.events.sources import SourceSnapshot, SourceStores
from gpuwaste.jobs.events.envelope import StoredEvent, tell
from gpuwaste.jobs.events.kinds.waste import CauseFound
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.store.hub.hub_store import HubStore

_MARK: Final = "findings_told"  # UTC seconds: the causes of runs that ended by then are reported
_MOST: Final = 5000  # runs at a time
_MAX_EVIDENCE: Final = 64 * 1024  # characters


class Findings:
    """Follows the table of judged runs in the order of their ends."""

    def __init__(self, store: HubStore) -> None:
        self._store = store
        self._until = 0

    def events(self, seen: SourceSnapshot) -> Sequence[StoredEvent]:
        """Return the causes of runs that were judged since the last time."""
        since = self._store.mark(_MARK)
        if since is None:
            self._store.set_mark(_MARK, seen.now)
            return []
        with self._store.reader() as db:
            rows = db.rows("causes_since", {"from_s": since, "to_s": seen.now, "limit": _MOST})
        self._until = _until(rows, since)
        return [event for row in rows if row["end"] <= self._until for event in _causes(row)]

    def told(self) -> None:
        """Record that the last result is in the stream."""
        if self._until:
            self._store.set_mark(_MARK, self._until)


def make(stores: SourceStores) -> Findings:
    """Return the source."""
    return Findings(stores.store)


def _until(rows: Sequence[Mapping[str, Any]], since: int) -> int:
    """Return the end time up to which the rows contain all causes."""
    if not rows:
        return since
    first, last = rows[0]["end"], rows[-1]["end"]
    return int(last - 1 if len(rows) == _MOST and first < last else last)


def _causes(row: Mapping[str, Any]) -> Iterator[StoredEvent]:
    run = RunKey(row["cluster"], row["job_id"], row["run_start"])
    for cause in json.loads(row["causes"]):
        evidence = cause["evidence"] if len(json.dumps(cause["evidence"])) <= _MAX_EVIDENCE else {}
        data = CauseFound(
            *(run.cluster, run.job_id, run.start, row["user"], row["account"]),
            cause=cause["kind"],
            title=cause["title"],
            fix=tuple(cause["fix"]),
            wasted_gpu_s=float(cause["wasted_gpu_s"]),
            evidence=evidence,
            fixes=tuple(cause.get("fixes", ())),
        )
        yield tell("waste.finding", data, row["end"], run=run, unique=cause["kind"])
