"""The nodes of a live cluster in pools, what a job requests on each node, and when reservations close them.

A pool is the nodes of the same partitions, with the same types of GPU, in the same reservations.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from gpuwaste.plan.start_time.scheduler_queue import MAX_POOLS, NO_LIMIT_S, Nodes
from gpuwaste.slurm.accounting.tres_amounts import count_of_tres, memory_b
from gpuwaste.slurm.site.cluster_model import Node, Reservation
from gpuwaste.slurm.submit.job_request import JobRequest

ALONE: Final = 1 << 20  # shares of a node: a job that shares it takes one, an exclusive job takes all of them
CPUS, MEMORY, GPUS, SHARES = range(4)
RESOURCES: Final = 4  # followed by those of GPU types, where nodes have several
_MAX_TYPES: Final = 16


class PoolKey(NamedTuple):
    """What the nodes of a pool have in common; reservations by their numbers."""

    partitions: tuple[str, ...]
    gpu_type: str
    reservations: tuple[int, ...]

    @property
    def gpu_types(self) -> list[str]:
        """The types, separated."""
        return self.gpu_type.split(",")


@dataclass(slots=True)
class LivePool:
    """Equal nodes, the total of their GPUs, and the most CPUs, bytes and GPUs on one of them."""

    key: PoolKey
    number: int
    nodes: int = 0
    gpus: int = 0
    largest: tuple[int, int, int] = (0, 0, 0)


@dataclass(slots=True)
class LiveNodes:
    """Usable nodes by name with their numbers, in pools; `mixed` are GPU types counted separately on each node."""

    pools: tuple[LivePool, ...] = ()
    number: dict[str, int] = field(default_factory=dict)
    pool: list[int] = field(default_factory=list)
    capacity: list[tuple[int, ...]] = field(default_factory=list)
    mixed: tuple[str, ...] = ()

    @property
    def resources(self) -> int:
        """The number of resources counted on a node."""
        return RESOURCES + len(self.mixed)

    def machine(self, reservations: Sequence[Reservation], now: int) -> Nodes:
        """Return the nodes in the format of the forward simulation; `reservations` are those of the pools' keys."""
        rows: list[tuple[int, int, int, int]] = []
        for number, one in enumerate(reservations):
            bits = sum(1 << pool.number for pool in self.pools if number in pool.key.reservations)
            begin, end = (min(max(at - now, 0), NO_LIMIT_S) for at in (one.start, one.end))
            if bits and begin < end:
                rows.append((bits, begin, end, number))
        capacity = np.array(self.capacity, np.int64).reshape(-1, self.resources)
        return Nodes(capacity, np.array(self.pool, np.int64), np.array(rows, np.int64).reshape(-1, 4))

    def held(self, cpus: int, memory: int, by_type: tuple[int, tuple[str, ...]], *, alone: bool) -> tuple[int, ...]:
        """Return what a job holds on one node, GPUs by type."""
        gpus, types = by_type
        typed = (gpus if types == (kind,) else 0 for kind in self.mixed)
        return (cpus, memory, gpus, ALONE if alone else 1, *typed)

    def asked(self, request: JobRequest, pools: Iterable[LivePool]) -> tuple[tuple[int, ...], int, int]:
        """Return what a request needs on each node, the number of nodes, and the pools that fit, as bits (0: none).

        The requested total is spread evenly, over more nodes than the request names if these are too small for it;
        where pools need different numbers of nodes, the fewest.
        """
        amounts = (request.cpus or 1, request.mem_b or 0, request.gpus)
        needed: dict[int, int] = {}
        for pool in pools:
            found = request.nodes or 1
            for amount, most in zip(amounts, pool.largest, strict=True):
                found = max(found, -(-amount // most) if most else (1 << 40) * (amount > 0))
            if found <= pool.nodes:
                needed[pool.number] = found
        nodes = min(needed.values(), default=1)
        cpus, memory, gpus = (-(-amount // nodes) for amount in amounts)
        types = tuple(request.gpu_type.split(",")) if request.gpu_type else ()
        asks = self.held(cpus, memory, (gpus, types), alone=bool(request.whole_node))
        return asks, nodes, sum(1 << number for number, count in needed.items() if count == nodes)


def live_nodes(nodes: Iterable[Node], reservations: Sequence[Reservation]) -> LiveNodes:
    """Return the usable nodes in pools.

    Beyond MAX_POOLS a node joins a pool of its partitions and types, or is left out.
    """
    rows = [node for node in nodes if node.partitions and not node.down]
    kinds = [dict(sorted(node.gpus.items())) for node in rows]
    mixed = tuple(sorted({kind for one in kinds if len(one) > 1 for kind in one})[:_MAX_TYPES])
    covering: dict[str, list[int]] = {}
    for number, reservation in enumerate(reservations):
        for name in reservation.nodes:
            covering.setdefault(name, []).append(number)
    found, pools = LiveNodes(mixed=mixed), dict[PoolKey, LivePool]()
    for node, types in zip(rows, kinds, strict=True):
        key = PoolKey(tuple(sorted(node.partitions)), ",".join(types), tuple(covering.get(node.name, ())))
        if key not in pools and len(pools) == MAX_POOLS:
            key = next((one for one in pools if one[:2] == key[:2]), key)
            if key not in pools:
                continue
        pool = pools.setdefault(key, LivePool(key, len(pools)))
        one = (node.cpus, node.memory_b, node.gpu_count)
        pool.nodes += 1
        pool.gpus += node.gpu_count
        pool.largest = (max(pool.largest[0], one[0]), max(pool.largest[1], one[1]), max(pool.largest[2], one[2]))
        found.number[node.name] = len(found.pool)
        found.pool.append(pool.number)
        found.capacity.append((*one, ALONE, *(types.get(kind, 0) for kind in mixed)))
    found.pools = tuple(pools.values())
    return found


def whole_amounts(tres: Mapping[str, str]) -> tuple[int, int]:
    """Return CPUs and bytes of a printed TRES list."""
    return count_of_tres(tres, "cpu") or 0, memory_b(dict(tres)) or 0
