"""When single nodes have room: GPUs that are free on several nodes are no room for a job that wants them on one.

The forward simulation counts a pool as a whole; a request starts in it no earlier than this. What waits before the
request, and what will start on the nodes until then, is left out.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from gpuwaste.core.request import JobRequest


@dataclass(slots=True)
class NodeRoom:
    """GPUs of one node, its pool by number, and what runs there: seconds until it ends, and the GPUs that it holds."""

    pool: int
    gpus: int
    held: list[tuple[int, int]] = field(default_factory=list)

    def free_in_s(self, gpus: int) -> int | None:
        """Return the seconds until so many GPUs are free, None where the node never has as many."""
        if gpus > self.gpus:
            return None
        free = self.gpus - sum(held for _, held in self.held)
        for rest_s, held in sorted(self.held):
            if free >= gpus:
                break
            free += held
            if free >= gpus:
                return rest_s
        return 0


def room_in_s(request: JobRequest, pools: Collection[int], rooms: Iterable[NodeRoom]) -> int:
    """Return the seconds until enough nodes of the pools have the GPUs that a request wants on each.

    0 for a request without GPUs, and where no node is large enough: what the pools have as a whole decides then.
    GPUs that are asked for in all are taken to be spread evenly over the nodes of the request, one where it names none.
    """
    if not request.gpus:
        return 0
    nodes = max(1, request.nodes or 1)
    each = -(-request.gpus // nodes)
    waits = sorted(s for room in rooms if room.pool in pools and (s := room.free_in_s(each)) is not None)
    return waits[nodes - 1] if len(waits) >= nodes else 0


def rooms_of(
    nodes: Mapping[str, tuple[int, int]], held: Iterable[tuple[Mapping[str, int], int]]
) -> tuple[NodeRoom, ...]:
    """Return the room of each node: (pool, GPUs) by name, and the GPUs by node and the seconds left of what runs."""
    rooms = {name: NodeRoom(pool, gpus) for name, (pool, gpus) in nodes.items()}
    for by_node, rest_s in held:
        for name, gpus in by_node.items():
            if name in rooms and gpus:
                rooms[name].held.append((rest_s, gpus))
    return tuple(rooms.values())
