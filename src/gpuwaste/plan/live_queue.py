"""The queue of a live cluster as the forward simulation takes it: pools of nodes, what runs, what waits.

A pool is the nodes of the same partitions with the same type of GPU; CPUs, memory, GPUs and whole nodes are counted in
it. A request starts no earlier than single nodes have its GPUs free (node_room.py); that is not so of those that wait.
Not modelled: how jobs are spread over nodes of a pool, reservations, preemption, limits of QOS and associations.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np

from gpuwaste.core.errors import NoDataError, ParseError
from gpuwaste.core.request import JobRequest
from gpuwaste.plan.node_room import NodeRoom, room_in_s, rooms_of
from gpuwaste.plan.when.past_runs import PastRuns
from gpuwaste.plan.when.queue import MAX_POOLS, NO_LIMIT_S, Candidate, Pools, Queue, jobs_of
from gpuwaste.plan.when.run_times import median_rest
from gpuwaste.slurm.cluster_config import NodeInfo
from gpuwaste.slurm.hostlist import expand
from gpuwaste.slurm.node_state import is_usable
from gpuwaste.slurm.printed_id import task_count
from gpuwaste.slurm.scontrol import RunningJob
from gpuwaste.slurm.tres import memory_b, parse_tres
from gpuwaste.slurm.tres_request import request_like

RESOURCES: Final = 4  # CPUs, bytes of memory, GPUs, whole nodes
MAX_TASKS: Final = 1000  # of one waiting array: those behind them are too far away to matter
MAX_WAITING: Final = 50_000
_RUNS: Final = frozenset({"RUNNING", "COMPLETING", "SUSPENDED", "STOPPED"})
_STUCK: Final = ("Dependency", "JobHeld", "DependencyNeverSatisfied", "BadConstraints", "InvalidQOS", "InvalidAccount")


class _Key(NamedTuple):
    partitions: tuple[str, ...]
    gpu_type: str


@dataclass(slots=True)
class _Pool:
    key: _Key
    number: int
    nodes: int = 0
    cpus: int = 0
    mem_b: int = 0
    gpus: int = 0


@dataclass(frozen=True, slots=True)
class LiveQueue:
    """The queue, the pools by which requests find theirs, and the ids of those that wait in their order.

    `default` is the partition of a request that names none; `shapes` is what run times are learnt by.
    """

    queue: Queue
    pools: tuple[_Pool, ...]
    ids: tuple[int, ...]
    default: str
    past: PastRuns
    rooms: tuple[NodeRoom, ...] = ()

    def candidate(self, request: JobRequest, *, place: int | None = None, begin_s: int = 0) -> Candidate:
        """Return a request as a row. Raises NoDataError where no pool of its partition has what it asks for."""
        row = _candidate(request, self.pools, self.default, self.past, place=place, begin_s=begin_s)
        pools = {pool.number for pool in self.pools if row.pools >> pool.number & 1}
        return row._replace(begin_s=max(begin_s, room_in_s(request, pools, self.rooms)))

    def without(self, job_id: int) -> "tuple[LiveQueue, int] | None":
        """Return the queue without one that waits, and its place in it; None where it does not wait."""
        if job_id not in self.ids:
            return None
        place = self.ids.index(job_id)
        keep = np.array([one != job_id for one in self.ids])
        waiting = type(self.queue.waiting)(*(column[keep] for column in self.queue.waiting))
        ids = tuple(one for one in self.ids if one != job_id)
        return replace(self, queue=self.queue._replace(waiting=waiting), ids=ids), place


def live_queue(
    jobs: Sequence[RunningJob], nodes: Iterable[NodeInfo], default: str, past: PastRuns, now: int
) -> LiveQueue:
    """Return what slurmctld told as a queue. Raises NoDataError for a cluster without a usable node."""
    pools, of_node = _pools(nodes)
    if not pools:
        raise NoDataError("no node of the cluster can run jobs: see sinfo -R")
    found = tuple(pools.values())
    ran = [job for job in jobs if job.state in _RUNS]
    rows = [(job, row) for job in ran if (row := _running(job, of_node, past, now)) is not None]
    running = jobs_of([row for _, row in rows], RESOURCES)
    waiting, ids = _waiting(jobs, found, default, past, now)
    capacity = np.array([(pool.cpus, pool.mem_b, pool.gpus, pool.nodes) for pool in found], np.int64)
    machine = Pools(capacity, np.zeros((len(found), 2), np.int64))
    queue = Queue(now, machine, running, jobs_of(waiting, RESOURCES))
    held = [{name: held.gpus for name, held in job.nodes.items()} for job, _ in rows]
    places = {name: (pool.number, gpus) for name, (pool, gpus) in of_node.items()}
    rooms = rooms_of(places, zip(held, median_rest(running).tolist(), strict=True))
    return LiveQueue(queue, found, tuple(ids), default, past, rooms)


def _pools(nodes: Iterable[NodeInfo]) -> tuple[dict[_Key, _Pool], dict[str, tuple[_Pool, int]]]:
    """Return the pools, and the pool and the GPUs of each node; a node that is down has none."""
    pools: dict[_Key, _Pool] = {}
    of_node: dict[str, tuple[_Pool, int]] = {}
    for node in nodes:
        types = sorted({entry.type for entry in node.gres if entry.name == "gpu"})
        key = _Key(tuple(sorted(node.partitions)), ",".join(types))
        if not node.partitions or not is_usable(node.state):
            continue
        if key not in pools and len(pools) == MAX_POOLS:
            continue
        pool = pools.setdefault(key, _Pool(key, len(pools)))
        tres = _tres(node.tres)
        pool.nodes += 1
        pool.cpus += _whole(tres.get("cpu"))
        pool.mem_b += memory_b(tres) or 0
        pool.gpus += node.gpus
        of_node[node.name] = (pool, node.gpus)
    return pools, of_node


def _running(job: RunningJob, of_node: Mapping[str, tuple[_Pool, int]], past: PastRuns, now: int) -> Candidate | None:
    names = list(job.nodes) or (expand(job.node_list) if job.node_list else [])
    pool = next((of_node[name][0] for name in names if name in of_node), None)
    if pool is None:
        return None
    limit_s = job.time_limit_s or NO_LIMIT_S
    tres = _tres(job.tres)
    gpus = sum(held.gpus for held in job.nodes.values())
    asks = (_whole(tres.get("cpu")), memory_b(tres) or 0, gpus, len(names) if job.exclusive else 0)
    since = max(0, now - job.start) if job.start is not None else 0
    # What a pool holds is at most what it has: a job on nodes of two pools is counted in the first.
    most = (pool.cpus, pool.mem_b, pool.gpus, pool.nodes)
    held = tuple(min(one, limit) for one, limit in zip(asks, most, strict=True))
    run_s = past.quantiles(job.user, (job.partition, gpus), limit_s)
    return Candidate(held, 1 << pool.number, limit_s, tuple(run_s.tolist()), since)


def _waiting(
    jobs: Iterable[RunningJob], pools: Sequence[_Pool], default: str, past: PastRuns, now: int
) -> tuple[list[Candidate], list[int]]:
    """Return those that wait in the order of priority, an array as its tasks; what can never start is left out."""
    rows: list[Candidate] = []
    ids: list[int] = []
    pending = [job for job in jobs if job.state == "PENDING" and job.priority != 0 and not _stuck(job.reason)]
    pending.sort(key=lambda job: (-(job.priority or 0), job.submit or 0, job.job_id))
    for job in pending:
        begin_s = max(0, (job.eligible or 0) - now)
        try:
            row = _candidate(request_like(job, whole_node=job.exclusive), pools, default, past, begin_s=begin_s)
        except (NoDataError, ParseError):
            continue
        tasks = min(task_count(job.printed_id), MAX_TASKS, MAX_WAITING - len(rows))
        rows += [row] * tasks
        ids += [job.job_id] * tasks
    return rows, ids


def _candidate(
    request: JobRequest,
    pools: Sequence[_Pool],
    default: str,
    past: PastRuns,
    *,
    place: int | None = None,
    begin_s: int = 0,
) -> Candidate:
    names = set((request.partition or default).split(","))
    fitting = [pool for pool in pools if names & set(pool.key.partitions) and _fits(request, pool)]
    if not fitting:
        raise NoDataError(f"no nodes of partition {request.partition or default} have what the job asks for")
    limit_s = request.time_limit_s or NO_LIMIT_S
    nodes = request.nodes or 1
    asks = (request.cpus or 1, request.mem_b or 0, request.gpus, 0)
    if request.whole_node:
        one = fitting[0]
        asks = (max(asks[0], nodes * one.cpus // one.nodes), asks[1], asks[2], nodes)
    shape = ((request.partition or default).split(",")[0], request.gpus)
    run_s = past.quantiles(request.user, shape, limit_s)
    bits = sum(1 << pool.number for pool in fitting)
    return Candidate(asks, bits, limit_s, tuple(run_s.tolist()), begin_s, place)


def _fits(request: JobRequest, pool: _Pool) -> bool:
    kinds = pool.key.gpu_type.split(",")
    right_type = not request.gpu_type or request.gpu_type in kinds
    enough = (request.gpus, request.cpus or 1, request.mem_b or 0, request.nodes or 1)
    return (not request.gpus or right_type) and all(
        asked <= has for asked, has in zip(enough, (pool.gpus, pool.cpus, pool.mem_b, pool.nodes), strict=True)
    )


def _stuck(reason: str) -> bool:
    return reason.startswith(_STUCK)


def _tres(text: str) -> dict[str, str]:
    try:
        return parse_tres(text)
    except ParseError:
        return {}


def _whole(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) <= 9 else 0  # noqa: PLR2004 any cluster
