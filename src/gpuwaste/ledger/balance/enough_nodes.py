"""EnoughNodes: for jobs of several nodes, whether so many nodes have room at the same time."""

from collections.abc import Iterable
from typing import Final

from gpuwaste.ledger.balance.demand import Demand, Masks, bits_of

_WAYS: Final = ("fit", "memory", "cpus")


class EnoughNodes:
    """Counts the nodes that have room for a part of each waiting job of several nodes.

    `fit`, `memory` and `cpus` are the bits of requests for which too few nodes have no obstacle, or none but memory, or
    none but CPUs. `changed` is set when one of them changes.
    """

    def __init__(self, demand: Demand) -> None:
        self._demand = demand
        self._counts: dict[int, list[int]] = {}  # by number of the bit, in the order of _WAYS
        self._followed = 0
        self.fit = self.memory = self.cpus = 0
        self.changed = False

    def follow(self, nodes: Iterable[tuple[Masks, int]]) -> None:
        """Count for the requests that wait now; `nodes` are numbers of nodes, with what is in the way there."""
        wanted = self._demand.active & self._demand.of_several_nodes
        for number in bits_of(self._followed & ~wanted):
            del self._counts[number]
            for way in _WAYS:
                setattr(self, way, getattr(self, way) & ~(1 << number))
        new = wanted & ~self._followed
        self._followed = wanted
        for number in bits_of(new):
            self._counts[number] = [0, 0, 0]
            self._judge(number)
        for masks, count in nodes if new else ():
            self._count(masks, count, new)

    def count(self, masks: Masks, nodes: int) -> None:
        """Count so many nodes in, or, below 0, out."""
        if self._followed:
            self._count(masks, nodes, self._followed)

    def _count(self, masks: Masks, nodes: int, wanted: int) -> None:
        for number in bits_of((masks.fit | masks.memory | masks.cpus) & wanted):
            bit, counts = 1 << number, self._counts[number]
            if masks.fit & bit:
                counts[0] += nodes
            counts[1] += nodes if (masks.fit | masks.memory) & bit else 0
            counts[2] += nodes if (masks.fit | masks.cpus) & bit else 0
            self._judge(number)

    def _judge(self, number: int) -> None:
        needed = self._demand.requests[number].nodes
        for way, count in zip(_WAYS, self._counts[number], strict=True):
            before = getattr(self, way)
            after = before & ~(1 << number) if count >= needed else before | (1 << number)
            if after != before:
                setattr(self, way, after)
                self.changed = True
