"""Demand: the jobs that wait, as bits of integers: which of them concern a node, and what is in their way there.

Jobs that request the same are one NodeRequest, and have one bit. With few operations on integers a node is compared
with all that wait, however many.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

from gpuwaste.ledger.balance.timeline import Free
from gpuwaste.ledger.balance.types import NodeSpan, WaitingRun

_SIMPLE: Final = re.compile(r"[\w.:+\-]{1,64}(?:(?:&[\w.:+\-]{1,64}){0,16}|(?:\|[\w.:+\-]{1,64}){0,16})", re.ASCII)


class NodeRequest(NamedTuple):
    """What jobs request: on each of `nodes` nodes so many GPUs, CPUs and bytes; `total` GPUs in all."""

    partitions: frozenset[str]
    constraint: str
    gpu_type: str
    nodes: int
    gpus: int
    cpus: int
    memory_b: int
    total: int
    time_limit_s: int | None


@dataclass(slots=True)
class Masks:
    """The requests with no obstacle on a node, or only one, as bits; `known` are those that were compared."""

    known: int = 0
    fit: int = 0
    memory: int = 0
    cpus: int = 0
    gpus: int = 0
    other_type: int = 0
    concerned: int = 0


def request_of(run: WaitingRun) -> NodeRequest:
    """Return what a job requests on each node: an even share, rounded up."""
    nodes = max(1, run.nodes)
    gpus, cpus, memory_b = (-(-amount // nodes) for amount in (run.gpus, run.cpus, run.memory_b))
    return NodeRequest(
        run.partitions, run.constraint, run.gpu_type, nodes, gpus, cpus, memory_b, run.gpus, run.time_limit_s
    )


@lru_cache(maxsize=4096)
def constraint_met(constraint: str, features: frozenset[str]) -> bool | None:
    """Return whether features meet names that are joined by & or by |; None for what is more than that."""
    if not constraint:
        return True
    if _SIMPLE.fullmatch(constraint) is None:
        return None
    if "|" in constraint:
        return not features.isdisjoint(constraint.split("|"))
    return features.issuperset(constraint.split("&"))


class Demand:
    """The requests that wait now, of jobs that a limit keeps back and of others, as bits that are given for a sweep."""

    def __init__(self) -> None:
        self.requests: list[NodeRequest] = []
        self.unlimited = self.limited = self.active = self.of_several_nodes = 0
        self._bits: dict[NodeRequest, int] = {}
        self._waiting: Counter[tuple[bool, int]] = Counter()

    def bit(self, request: NodeRequest) -> int:
        """Return the number of the bit of a request."""
        found = self._bits.get(request)
        if found is None:
            found = self._bits[request] = len(self.requests)
            self.requests.append(request)
            self.of_several_nodes |= (request.nodes > 1) << found
        return found

    def count(self, number: int, change: int, *, limited: bool) -> bool:
        """Count a job with this bit in (1) or out (-1); return whether the bits of those that wait changed."""
        key = limited, number
        before = self._waiting[key]
        self._waiting[key] = before + change
        if bool(before) == bool(before + change):
            return False
        if limited:
            self.limited ^= 1 << number
        else:
            self.unlimited ^= 1 << number
        self.active = self.limited | self.unlimited
        return True

    def compare(self, masks: Masks, span: NodeSpan, free: Free, wanted: int) -> None:
        """Compare a node with the requests of `wanted` that it was not compared with."""
        masks.known |= wanted
        partitions = span.kind.partitions.split(",")
        types = span.kind.gpu_type.split(",")
        for number in bits_of(wanted):
            request = self.requests[number]
            met = constraint_met(request.constraint, span.features)
            if met is False or request.partitions.isdisjoint(partitions) or _too_large(request, span):
                continue
            bit = 1 << number
            masks.concerned |= bit
            if met is None:
                continue
            obstacles = _obstacles(request, free, types)
            if not obstacles:
                masks.fit |= bit
            elif len(obstacles) == 1:
                setattr(masks, obstacles[0], getattr(masks, obstacles[0]) | bit)


def bits_of(mask: int) -> Iterator[int]:
    """Yield the numbers of the bits that are set, the lowest first."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


def _too_large(request: NodeRequest, span: NodeSpan) -> bool:
    return request.gpus > span.gpus or request.cpus > span.cpus or request.memory_b > span.memory_b


def _obstacles(request: NodeRequest, free: Free, types: list[str]) -> list[str]:
    """Return the names of Masks' fields for what is in the way."""
    found = ["other_type"] if request.gpu_type and request.gpu_type not in types else []
    if request.gpus > free.gpus:
        found.append("gpus")
    if request.cpus > free.cpus:
        found.append("cpus")
    if request.memory_b > free.memory_b:
        found.append("memory")
    return found
