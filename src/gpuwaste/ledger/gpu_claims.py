"""Accounting's GPU count limits the GPUs stored of a run on each node: hours of further GPUs are rejected.

Each node is counted separately, since accounting has one count for all nodes: a node that sends false GPUs uses up no
other node's share. Where accounting does not know the run yet, or does not count GPUs, its hours are accepted; the
ledger limits what counts of them (ledger/queries/ledger_gpus.sql). The GPUs that arrived first stay, and a GPU that the
driver does not list never displaces a real one.
"""

import threading
from collections import OrderedDict, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from gpuwaste.ledger.hour import MISSING_PREFIX, AllocationHour
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.store.hub.json_rows import to_json

_MAX_RUNS: Final = 20_000  # kept in memory; others are read from the store again


@dataclass(slots=True)
class _Claims:
    """The GPUs, by UUID on each node, that are accepted for one run."""

    gpus: int
    real: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    missing: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    def take(self, node: str, uuid: str) -> bool:
        """Return whether hours of this GPU are accepted; if so, later ones are too."""
        real, missing = self.real[node], self.missing[node]
        if uuid in real or uuid in missing:
            return True
        lacking = uuid.startswith(MISSING_PREFIX)
        held = len(real) + (len(missing) if lacking else 0)
        if held < self.gpus:
            (missing if lacking else real).add(uuid)
        return held < self.gpus


class GpuClaims:
    """Which GPUs each run may have hours of. Used by the threads that receive batches."""

    def __init__(self, store: HubStore) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._runs: OrderedDict[RunKey, _Claims] = OrderedDict()

    def refused(self, rows: Mapping[int, AllocationHour]) -> dict[int, str]:
        """Return the rejected rows: the reason by line. Raises StoreError."""
        own = {line: row for line, row in rows.items() if row.share >= 1.0}
        with self._lock:
            self._learn({row.run_key for row in own.values()} - self._runs.keys())
            beyond = [line for line, row in own.items() if not self._take(row)]
            if beyond:  # accounting may have learned of more since
                for run, gpus in self._counts(sorted({own[line].run_key for line in beyond})).items():
                    self._runs[run].gpus = gpus
            return {line: self._reason(own[line]) for line in beyond if not self._take(own[line])}

    def _take(self, row: AllocationHour) -> bool:
        claims = self._runs.get(row.run_key)
        if claims is None:
            return True
        self._runs.move_to_end(row.run_key)
        return claims.take(row.node, row.gpu_uuid)

    def _reason(self, row: AllocationHour) -> str:
        gpus, run = self._runs[row.run_key].gpus, row.run_key
        return f"accounting gave job {run.job_id} {gpus} GPUs, and {row.gpu_uuid} on {row.node} is beyond them"

    def _learn(self, runs: set[RunKey]) -> None:
        """Remember the runs whose GPUs accounting counts, with the GPUs that are stored for them."""
        if not runs:
            return
        claims = {run: _Claims(gpus) for run, gpus in self._counts(sorted(runs)).items()}
        if claims:
            known = list(claims)
            parameters = {"rows": _keys(known), "lo": min(run.start for run in known)}
            with self._store.reader() as db:
                for row in db.rows("claims_stored", parameters):
                    claims[known[row["no"]]].take(row["node"], row["gpu_uuid"])
        self._runs.update(claims)
        while len(self._runs) > _MAX_RUNS:
            self._runs.popitem(last=False)

    def _counts(self, runs: Sequence[RunKey]) -> dict[RunKey, int]:
        """Return accounting's GPU count of each of the runs for which it has one."""
        bounds = {"lo": min(run.start for run in runs), "hi": max(run.start for run in runs)}
        with self._store.reader() as db:
            rows = db.rows("claims_counts", {**bounds, "rows": _keys(runs)})
        return {runs[row["no"]]: int(row["gpus"]) for row in rows}


def _keys(runs: Sequence[RunKey]) -> str:
    return to_json(
        {"no": no, "cluster": run.cluster, "job_id": run.job_id, "run_start": run.start} for no, run in enumerate(runs)
    )
