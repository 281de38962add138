"""What is known of the GPUs of open runs: the figures of `held_gpus`, and since when each is known without a break."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Final

from gpuwaste.core.errors import ParseError
from gpuwaste.ledger.held_gpus import HeldGpu, HeldRun, picked_held_runs
from gpuwaste.ledger.ledger import LedgerSettings
from gpuwaste.slurm.formats.hostlist import expand
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.store.database import Database
from gpuwaste.store.hub.json_rows import to_json

UNATTRIBUTED: Final = frozenset({"none", "conflict"})


@dataclass(frozen=True, slots=True)
class GpuProof:
    """One GPU of an open run; milliseconds of its agent's clock, None where no agent reported it."""

    gpu: HeldGpu
    known_from_ms: int | None
    map_source: str
    confidence: str


@dataclass(slots=True)
class RunProof:
    """An open run with its own GPUs; `beyond` is how many more than accounting's were reported."""

    run: HeldRun
    gpus: list[GpuProof] = field(default_factory=list)
    beyond: int = 0

    def on(self, node: str) -> int:
        """Return how many of its own GPUs are on a node."""
        return sum(proof.gpu.node == node for proof in self.gpus)


def run_proofs(db: Database, runs: Collection[RunKey], settings: LedgerSettings, now: int) -> list[RunProof]:
    """Return those of the runs that have started, not ended, and hold GPUs or parts of them. Raises StoreError."""
    if not runs:
        return []
    keys = ({"cluster": run.cluster, "job_id": run.job_id, "run_start": run.start} for run in runs)
    db.run("idleness_pick", {"rows": to_json(keys)})
    held = picked_held_runs(db, settings, now)
    if not held:
        return []
    found = {run.place: RunProof(run) for run in held}
    known = {(place, node, uuid): ms for place, node, uuid, ms in db.run("idleness_stretches").fetchall()}
    sources: dict[tuple[int, str, str], tuple[str, str]] = {}
    for place, node, uuid, source, confidence, beyond in db.run("idleness_reported").fetchall():
        sources[place, node, uuid] = source, confidence
        found[place].beyond = beyond
    for run in held:
        for gpu in run.held:
            key = (run.place, gpu.node, gpu.gpu_uuid)
            found[run.place].gpus.append(GpuProof(gpu, known.get(key), *sources.get(key, ("none", "none"))))
    return list(found.values())


@dataclass(frozen=True, slots=True)
class NodeRuns:
    """The runs that accounting has on a node: open ones, and when the last of the others ended, UTC seconds."""

    open: Sequence[RunKey]
    last_end: int | None


def node_runs(db: Database, cluster: str, node: str, ended_after: int) -> NodeRuns:
    """Return the runs on a node that have not ended, or ended after an instant. Raises StoreError.

    An open run whose nodes accounting does not name might be there, so it counts.
    """
    keys, ends = [], []
    rows = db.run("idleness_on_nodes", {"cluster": cluster, "ended_after": ended_after}).fetchall()
    for job_id, start, nodes, end in rows:
        if end is None and (not nodes or _has(nodes, node)):
            keys.append(RunKey(cluster, job_id, start))
        elif end is not None and _has(nodes, node):
            ends.append(end)
    return NodeRuns(keys, max(ends, default=None))


def _has(hostlist: str, node: str) -> bool:
    """Return whether a hostlist has a node; one that cannot be read might, so it counts as having it."""
    if "[" not in hostlist and "," not in hostlist:
        return hostlist == node
    try:
        return node in expand(hostlist)
    except ParseError:
        return True
