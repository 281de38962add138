"""Moments of running runs and of the model in use: their state at an instant, as rows for the facts of rules."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Final

import msgspec

from gpuwaste.act.rules.rule_facts import GpuState
from gpuwaste.ledger.held_gpus import IDLE_MS, HeldGpu, HeldRun
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.store.database import Database

PREFIX: Final = "ledger."
IDLE_NODE_S: Final = 600  # as long as all GPUs of a node are idle before the node counts as idle
NO_NODE: Final = "none"


@dataclass(frozen=True, slots=True)
class ModelMoment:
    """The model that the hub predicts with; the name is empty if there is none."""

    name: str = ""
    hash: str = ""
    created_utc: int | None = None


_NOT_KNOWN: Final = GpuState()
_STATE: Final = tuple(field.name for field in fields(GpuState))


@dataclass(frozen=True, slots=True)
class Moment:
    """A run at an instant, UTC seconds."""

    run: RunKey
    at_utc: int
    gpus: GpuState


def moments_of(runs: Iterable[HeldRun], now: int) -> list[Moment]:
    """Return the runs that hold GPUs, at the instant of their figures."""
    return [Moment(run.job.run_key, now, gpu_state(run.held, now)) for run in runs]


def gpu_state(held: Sequence[HeldGpu], now: int) -> GpuState:
    """Return the state of a run's GPUs; unknown if one is silent, suspended or shared, so that no rule acts."""
    if not held or any(gpu.level in {"unknown", "suspended"} for gpu in held):
        return _NOT_KNOWN
    idle = [gpu for gpu in held if gpu.level == "idle" and gpu.idle_ms >= IDLE_MS]
    lengths = [gpu.idle_ms / 1000 for gpu in idle]
    nodes = _idle_nodes(held)
    return GpuState(
        idle_s=min(lengths) if len(idle) == len(held) else 0.0,
        idle_gpus=len(idle),
        longest_idle_s=max(lengths, default=0.0),
        idle_nodes=",".join(sorted(nodes)) or NO_NODE,
        idle_nodes_s=min(nodes.values(), default=0.0),
        untouched_gpus=sum(gpu.last_active_ms is None for gpu in idle),
        wasted_gpu_s=sum(gpu.wasted_ms for gpu in held) / 1000,
        exempt_gpu_s=sum(gpu.exempt_ms for gpu in held) / 1000,
        age_s=max(0.0, now - min(gpu.seen_ms or 0 for gpu in held) / 1000),
        coverage=min(gpu.coverage for gpu in held),
        hang_s=_hang_s(held),
        cpu_cores=_cpu_cores(held),
    )


def _idle_nodes(held: Sequence[HeldGpu]) -> dict[str, float]:
    """Return for how long all GPUs of the run on a node have been idle, by node, for nodes that count as idle."""
    found: dict[str, float] = {}
    for gpu in held:
        found[gpu.node] = min(found.get(gpu.node, float("inf")), gpu.idle_ms / 1000 if gpu.level == "idle" else 0.0)
    return {node: seconds for node, seconds in found.items() if node and seconds >= IDLE_NODE_S}


def _hang_s(held: Sequence[HeldGpu]) -> float | None:
    """Return how long all GPUs have looked busy without computing; a GPU in unknown state may be working."""
    if any(gpu.hang_ms is None for gpu in held):
        return 0.0 if any(gpu.hang_ms == 0 for gpu in held) else None
    return min(gpu.hang_ms or 0 for gpu in held) / 1000


def _cpu_cores(held: Sequence[HeldGpu]) -> float | None:
    """Return the CPU cores of the run: each GPU of a node has those of the run on that node."""
    nodes = {gpu.node: gpu.cpu_cores for gpu in held}
    return None if None in nodes.values() else sum(cores or 0.0 for cores in nodes.values())


def running_facts(db: Database, moments: Sequence[Moment]) -> None:
    """Make temp table facts of these moments, in their order."""
    db.run("moments_create")
    columns: dict[str, list[object]] = {
        "place": list(range(len(moments))),
        "cluster": [one.run.cluster for one in moments],
        "job_id": [one.run.job_id for one in moments],
        "run_start": [one.run.start for one in moments],
        "at_utc": [one.at_utc for one in moments],
    }
    for name in _STATE:
        columns[name] = [getattr(one.gpus, name) for one in moments]
    db.run("moments_add", {name: msgspec.json.encode(values).decode() for name, values in columns.items()})
    db.run("job_facts")


def waiting_facts(db: Database, cluster: str, now: int) -> None:
    """Make temp table facts of the waiting jobs."""
    db.run("moments_create")
    db.run("moments_waiting", {"cluster": cluster, "now": now})
    db.run("job_facts")


def node_facts(db: Database, cluster: str, now: int, xids: Iterable[int] = ()) -> None:
    """Make temp table facts of the nodes; `xids` are the Xid errors that count."""
    db.run("node_facts", {"cluster": cluster, "now": now, "xids": list(xids)})


def model_facts(db: Database, cluster: str, now: int, model: ModelMoment) -> None:
    """Make temp table facts of the model in use."""
    values = {"name": model.name, "hash": model.hash, "created": model.created_utc}
    db.run("model_facts", {"cluster": cluster, "now": now, **values})
