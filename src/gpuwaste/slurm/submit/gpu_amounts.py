"""From the ways to ask for GPUs to what Slurm counts for the job: GPUs, nodes and tasks.

sbatch's options and a plugin's job description come to it alike. Compared with slurmctld 22.05 on drawn requests in
tests/contract/test_sbatch_tres_contract.py.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from gpuwaste.slurm.submit.gpu_items import MOST

Counts = Mapping[str, int]
"""Type -> count, "" for any type."""


@dataclass(slots=True)
class GpusAsked:
    """GPUs of the whole job, of a node, of a socket, of a task, and the tasks of a GPU (0: not said)."""

    of_job: Counts = field(default_factory=dict)
    of_node: Counts = field(default_factory=dict)
    of_socket: Counts = field(default_factory=dict)
    of_task: Counts = field(default_factory=dict)
    tasks_of_gpu: int = 0


@dataclass(slots=True)
class Settled:
    """What the whole job gets; `tasks` is how many tasks the GPUs come to, 0 where they do not say."""

    gpus: int  # at most MOST
    types: str
    nodes: int
    tasks: int


def counted(items: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Return the largest count of each type, as Slurm takes a list that names a type twice; 0 asks for nothing."""
    found: dict[str, int] = {}
    for kind, count in items:
        if count:
            found[kind] = max(count, found.get(kind, 0))
    return found


def settle(asked: GpusAsked, nodes: int, sockets: int, tasks: int | None) -> Settled:
    """Return what `nodes` of `sockets` each with `tasks` in all (None: not said) come to."""
    whole = sum(asked.of_job.values())
    known = whole or sum(asked.of_node.values()) * nodes
    if asked.tasks_of_gpu and not known:
        known = nodes if tasks is None else tasks // asked.tasks_of_gpu
    by_gpus = asked.tasks_of_gpu * known
    if tasks is None and whole and asked.of_task:
        by_gpus = max(1, whole // sum(asked.of_task.values()))
    count = tasks or by_gpus or nodes
    parts = ((asked.of_job, 1), (asked.of_node, nodes), (asked.of_socket, nodes * sockets), (asked.of_task, count))
    gpus = counted((kind, each * times) for part, times in parts for kind, each in part.items())
    # Of GPUs of the job and of a node Slurm makes the number of nodes.
    needed = [each // asked.of_node[kind] for kind, each in asked.of_job.items() if kind in asked.of_node]
    return Settled(
        gpus=min(sum(gpus.values()) or (known if asked.tasks_of_gpu else 0), MOST),
        types=",".join(sorted(gpus.keys() - {""})),
        nodes=max(needed, default=0) or nodes,
        tasks=by_gpus,
    )


def cpus_by_gpus(of_gpu: int, asked: GpusAsked) -> int:
    """Return the processors of a task by --cpus-per-gpu, 0 for none: GPUs that a task asks for by type do not count."""
    return of_gpu * asked.of_task.get("", 0)


def cpus_of(least: int, tasks: int, cpus_of_task: int) -> int:
    """Return the processors of the job: more than sbatch counts only where there are more tasks than that."""
    return tasks * max(1, cpus_of_task) if tasks > least else least
