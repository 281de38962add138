"""Jobs that kept free GPUs from jobs that waited: which nodes, for how long, with how much of their memory or CPUs."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gpuwaste.jobs.machine.machine_reads import machine_nodes, memory_of
from gpuwaste.jobs.machine.types import MachineNode
from gpuwaste.ledger.balance.types import BalanceClass, Run
from gpuwaste.ledger.balance.window import MOST_BLOCKERS, Blocker
from gpuwaste.slurm.formats.hostlist import compressed
from gpuwaste.store.database import Database


@dataclass(frozen=True, slots=True)
class StrandingJob:
    """A job that was in the way on `nodes`, a hostlist, for `gpu_s` GPU-seconds of other jobs.

    `share` is the part of a node's memory or CPUs that it held there, `gpus` of `node_gpus` what it held itself; None
    is not known.
    """

    cluster: str
    of: BalanceClass
    run: Run
    printed_id: str
    name: str
    user: str
    account: str
    nodes: str
    gpu_s: int
    gpus: int
    node_gpus: int | None
    share: float | None


def stranding_jobs(db: Database, blocked: Mapping[Blocker, int]) -> list[StrandingJob]:
    """Return the MOST_BLOCKERS jobs that were most in the way, the most GPU-seconds first. Raises StoreError."""
    gpu_s: Counter[tuple[str, BalanceClass, Run]] = Counter()
    nodes: dict[tuple[str, BalanceClass, Run], set[str]] = defaultdict(set)
    for blocker, seconds in blocked.items():
        key = blocker.cluster, blocker.of, blocker.run
        gpu_s[key] += seconds
        nodes[key].add(blocker.node)
    largest = sorted(gpu_s, key=lambda key: (-gpu_s[key], key))[:MOST_BLOCKERS]
    found: dict[tuple[str, BalanceClass, Run], StrandingJob] = {}
    for cluster in sorted({key[0] for key in largest}):
        own = [key for key in largest if key[0] == cluster]
        found |= {key: job for key, job in zip(own, _described(db, cluster, own, nodes, gpu_s), strict=True) if job}
    return [found[key] for key in largest if key in found]


def _described(
    db: Database,
    cluster: str,
    keys: list[tuple[str, BalanceClass, Run]],
    nodes: Mapping[tuple[str, BalanceClass, Run], set[str]],
    gpu_s: Mapping[tuple[str, BalanceClass, Run], int],
) -> Iterator[StrandingJob | None]:
    ids = sorted({key[2][0] for key in keys})
    jobs = {
        (row["job_id"], row["run_start"]): row for row in db.rows("balance_jobs", {"cluster": cluster, "job_ids": ids})
    }
    starts = [key[2][1] for key in keys]
    machine: dict[str, list[MachineNode]] = defaultdict(list)
    for node in machine_nodes(db, cluster, min(starts), max(starts) + 1, assume_first=True):
        machine[node.node].append(node)
    for key in keys:
        row, names = jobs.get(key[2]), sorted(nodes[key])
        yield None if row is None else _job(key, row, names, gpu_s[key], _at(machine[names[0]], key[2][1]))


def _at(times: Iterable[MachineNode], instant: int) -> MachineNode | None:
    """Return a node as it was at a time."""
    return next(
        (node for node in times if node.since <= instant and (node.until is None or instant < node.until)), None
    )


def _job(
    key: tuple[str, BalanceClass, Run], row: Mapping[str, Any], nodes: list[str], gpu_s: int, node: MachineNode | None
) -> StrandingJob:
    cluster, of, run = key
    parts = max(1, row["n_nodes"] or 1)
    memory = of is BalanceClass.FREE_MEMORY
    held = (memory_of(row["alloc_tres"]) if memory else row["cpus"] or 0) / parts
    whole = 0 if node is None else node.memory_b if memory else node.cpus
    return StrandingJob(
        cluster,
        of,
        run,
        row["printed_id"],
        row["name"],
        row["user"],
        row["account"],
        compressed(nodes),
        gpu_s,
        -(-(row["gpus"] or 0) // parts),
        None if node is None else node.gpus,
        min(1.0, held / whole) if whole else None,
    )
