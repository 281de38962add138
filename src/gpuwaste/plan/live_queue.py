"""The queue of a live cluster in the format of the simulation, and the request shapes whose waits are published.

CPUs, memory, GPUs (by type where a node has several) and exclusive use are counted on each node. Not modelled:
preemption, features and topology of nodes, licenses, dependencies (a job that waits for another is left out). A shape
is partition, type of GPU, number of GPUs, time limit; advisors read the waits of shapes from the hub.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from gpuwaste.core.errors import NoDataError, ParseError
from gpuwaste.core.job_states import HOLDING
from gpuwaste.core.units import DAY_S, HOUR_S
from gpuwaste.plan.live_limits import LiveLimits
from gpuwaste.plan.live_nodes import LiveNodes, LivePool, live_nodes, whole_amounts
from gpuwaste.plan.start_time.run_times import PastRuns
from gpuwaste.plan.start_time.scheduler_queue import NO_LIMIT_S, Holdings, QueuedRequest, SchedulerQueue, jobs_of
from gpuwaste.slurm.accounting.tres_amounts import tres_or_none
from gpuwaste.slurm.clients.slurmctld_jobs import RunningJob
from gpuwaste.slurm.formats.hostlist import expand
from gpuwaste.slurm.formats.printed_run import task_count, throttle
from gpuwaste.slurm.site.cluster_model import ClusterModel, Node
from gpuwaste.slurm.submit.job_request import JobRequest, request_from_tres, request_like

MAX_TASKS: Final = 1000  # of one waiting array: later ones are too far away to matter
MAX_WAITING: Final = 50_000
_STUCK: Final = ("Dependency", "JobHeld", "DependencyNeverSatisfied", "BadConstraints", "InvalidQOS", "InvalidAccount")
_Held = tuple[int, int, tuple[int, ...]]
LIMITS_S: Final = (HOUR_S, 2 * HOUR_S, 4 * HOUR_S, 12 * HOUR_S, DAY_S, 3 * DAY_S, 7 * DAY_S)
SIZES: Final = (1, 2, 4, 8, 16, 32)
MAX_SHAPES: Final = 504  # 12 partitions with one type of GPU; each costs a check in every simulation of the queue


@dataclass(frozen=True, slots=True)
class LiveQueue:
    """The queue, the nodes among which requests find theirs, and the ids of the waiting jobs in queue order.

    `default` is the partition of a request that names none; `past` has the past run times.
    """

    queue: SchedulerQueue
    nodes: LiveNodes
    limits: LiveLimits
    ids: tuple[int, ...]
    default: str
    past: PastRuns
    reserved: Mapping[str, int]

    @property
    def pools(self) -> tuple[LivePool, ...]:
        """The pools."""
        return self.nodes.pools

    def candidate(
        self, request: JobRequest, *, place: int | None = None, begin_s: int = 0, job: RunningJob | None = None
    ) -> QueuedRequest:
        """Return a request as a row; `job` is the waiting job whose request it is, if any.

        Raises NoDataError where no pool of its partition has what it requests.
        """
        partition = request.partition or self.default
        wanted = {name for name in partition.split(",") if not self.limits.closed(request, name)}
        reservation = self.reserved.get(job.reservation, -2) if job is not None and job.reservation else -1
        fitting = [
            pool
            for pool in self.pools
            if not wanted.isdisjoint(pool.key.partitions)
            and (reservation == -1 or reservation in pool.key.reservations)
            and (not request.gpus or not request.gpu_type or request.gpu_type in pool.key.gpu_types)
        ]
        asks, nodes, bits = self.nodes.asked(request, fitting)
        if not bits:
            raise NoDataError(f"no node of partition {partition} has what the job requests")
        limit_s = request.time_limit_s or NO_LIMIT_S
        run_s = self.past.quantiles(request.user, (partition.split(",", 1)[0], request.gpus), limit_s)
        array = None
        if job is not None and job.array_job_id is not None:
            array = job.array_job_id
            most = throttle(job.printed_id)
            if most is not None:
                self.limits.throttle(array, most)
        return QueuedRequest(
            asks,
            bits,
            limit_s,
            tuple(run_s.tolist()),
            begin_s,
            place,
            nodes,
            reservation,
            self.limits.owner(request, partition, array),
            self.limits.tres(request, partition),
        )

    def asked_like(self, job: RunningJob, **changes: object) -> JobRequest:
        """Return the request of a waiting job."""
        return replace(request_like(job, whole_node=job.exclusive), **changes)  # type: ignore[arg-type]

    def without(self, job_id: int) -> "tuple[LiveQueue, int] | None":
        """Return the queue without a waiting job, and that job's place in it; None where it does not wait."""
        if job_id not in self.ids:
            return None
        place = self.ids.index(job_id)
        keep = np.array([one != job_id for one in self.ids])
        waiting = self.queue.waiting.changed(lambda column: column[keep])
        ids = tuple(one for one in self.ids if one != job_id)
        return replace(self, queue=self.queue._replace(waiting=waiting), ids=ids), place


def live_queue(  # noqa: PLR0917 Slurm's answers, in the order in which they were read
    jobs: Sequence[RunningJob],
    nodes: Iterable[Node],
    default: str,
    past: PastRuns,
    now: int,
    model: ClusterModel | None = None,
) -> LiveQueue:
    """Return slurmctld's answers as a queue; `model` has limits, partitions and reservations (None: there are none).

    Raises NoDataError for a cluster without a usable node, ConfigError for an impossible model.
    """
    reservations = [] if model is None else [one for one in model.reservations if one.end > now]
    found, limits = live_nodes(nodes, reservations), LiveLimits(model)
    if not found.pools:
        raise NoDataError("no node of the cluster can run jobs: see sinfo -R")
    machine = found.machine(reservations, now)
    reserved = {one.name: number for number, one in enumerate(reservations)}
    empty = jobs_of([], found.resources, limits.width)
    live = LiveQueue(SchedulerQueue(now, machine, empty, empty), found, limits, (), default, past, reserved)
    waiting, ids = _waiting(live, jobs)
    running, held = _running(live, [job for job in jobs if job.state in HOLDING])
    amounts = np.array([amounts for _, _, amounts in held], np.int64).reshape(-1, found.resources)
    places = np.array([(job, node) for job, node, _ in held], np.int64).reshape(-1, 2)
    queue = live.queue._replace(
        running=jobs_of(running, found.resources, limits.width),
        waiting=jobs_of(waiting, found.resources, limits.width),
        holdings=Holdings(places[:, 0], places[:, 1], amounts),
        limits=limits.queue_limits(),
    )
    return replace(live, queue=queue, ids=tuple(ids))


def _running(live: LiveQueue, jobs: Iterable[RunningJob]) -> tuple[list[QueuedRequest], list[_Held]]:
    """Return running jobs and what they hold; one on nodes that accept no jobs holds nothing, but counts for limits."""
    rows: list[QueuedRequest] = []
    held: list[_Held] = []
    now = live.queue.now
    for job in jobs:
        names = list(job.nodes) or (expand(job.node_list) if job.node_list else [])
        cpus, memory = whole_amounts(tres_or_none(job.tres))
        share = max(1, len(names))
        for name in names:
            number = live.nodes.number.get(name)
            if number is not None:
                on_node = job.nodes.get(name)
                gpus = (on_node.gpus, tuple(sorted(set(on_node.types)))) if on_node else (0, ())
                amounts = live.nodes.held(-(-cpus // share), memory // share, gpus, alone=job.exclusive)
                held.append((len(rows), number, amounts))
        limit_s = job.time_limit_s or NO_LIMIT_S
        since = max(0, now - job.start) if job.start is not None else 0
        gpus_in_all = sum(one.gpus for one in job.nodes.values())
        run_s = live.past.quantiles(job.user, (job.partition, gpus_in_all), limit_s)
        request = request_from_tres(job.tres, user=job.user, submit=0, account=job.account, qos=job.qos)
        owner = live.limits.owner(request, job.partition, job.array_job_id)
        tres = live.limits.tres(request, job.partition)
        none = (0,) * live.nodes.resources
        rows.append(QueuedRequest(none, 0, limit_s, tuple(run_s.tolist()), since, owner=owner, tres=tres))
    return rows, held


def _waiting(live: LiveQueue, jobs: Iterable[RunningJob]) -> tuple[list[QueuedRequest], list[int]]:
    """Return waiting jobs by priority, an array as its tasks; those that can never start are left out."""
    rows: list[QueuedRequest] = []
    ids: list[int] = []
    pending = [
        job for job in jobs if job.state == "PENDING" and job.priority != 0 and not job.reason.startswith(_STUCK)
    ]
    pending.sort(key=lambda job: (-(job.priority or 0), job.submit or 0, job.job_id))
    for job in pending:
        begin_s = max(0, (job.eligible or 0) - live.queue.now)
        try:
            row = live.candidate(live.asked_like(job), begin_s=begin_s, job=job)
        except (NoDataError, ParseError):
            continue
        tasks = min(task_count(job.printed_id), MAX_TASKS, MAX_WAITING - len(rows))
        rows += [row] * tasks
        ids += [job.job_id] * tasks
    return rows, ids


def wait_shapes(live: LiveQueue) -> list[tuple[JobRequest, QueuedRequest]]:
    """Return at most MAX_SHAPES runnable requests with a CPU for each GPU, and their rows in this queue."""
    found: list[tuple[JobRequest, QueuedRequest]] = []
    for request in _requests(live):
        try:
            found.append((request, live.candidate(request)))
        except NoDataError:
            continue
        if len(found) == MAX_SHAPES:
            break
    return found


def _requests(live: LiveQueue) -> Iterator[JobRequest]:
    types: dict[str, set[str]] = {}
    for pool in live.pools:
        for partition in pool.key.partitions if pool.gpus else ():
            types.setdefault(partition, {""}).update(pool.key.gpu_types)
    for partition in sorted(types):
        for gpu_type in sorted(types[partition]):
            for gpus in SIZES:
                for limit_s in LIMITS_S:
                    yield JobRequest(
                        user="",
                        submit=live.queue.now,
                        partition=partition,
                        gpus=gpus,
                        gpu_type=gpu_type,
                        cpus=gpus,
                        time_limit_s=limit_s,
                    )
