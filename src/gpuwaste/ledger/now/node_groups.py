"""The order and the groups of nodes on a map: by rack where the names have one, else by name, or by waste."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final, Literal

from gpuwaste.core.units import GpuTimeUnit
from gpuwaste.ledger.now.now_types import NodeRow
from gpuwaste.show.page_words import cut

NodeOrder = Literal["name", "waste"]
ORDERS: Final[tuple[NodeOrder, ...]] = ("name", "waste")

# Names come from the cluster: both patterns and the part of a name that is compared are bounded.
_RACK: Final = re.compile(r"([A-Za-z][A-Za-z._-]{0,30}[0-9]{1,6}|[A-Za-z][0-9]{1,6})[A-Za-z._-]{1,30}[0-9]")
_NUMBER: Final = re.compile(r"([0-9]{1,9})")
_COMPARED: Final = 64
_FEWEST: Final = 2  # nodes of a rack on average; with fewer it is no rack
_BLOCK: Final = 20  # nodes


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """Nodes next to each other on a map, under one label."""

    label: str
    nodes: Sequence[NodeRow]


def ordered(nodes: Sequence[NodeRow], order: NodeOrder) -> list[NodeRow]:
    """Return the nodes by name, with their numbers compared as numbers, or those with the largest waste first."""
    by_name = sorted(nodes, key=lambda node: _natural(node.node))
    return by_name if order == "name" else sorted(by_name, key=lambda node: -node.wasted_s)


def node_groups(nodes: Sequence[NodeRow], order: NodeOrder) -> list[NodeGroup]:
    """Return the groups of nodes, each of _BLOCK nodes at most."""
    found = ordered(nodes, order)
    if order == "waste":
        unit = GpuTimeUnit.of([sum(node.wasted_s for node in nodes)])
        return [NodeGroup(unit.words(sum(node.wasted_s for node in block)), block) for block in _parts(found)]
    racks = [(rack, list(group)) for rack, group in groupby(found, key=_rack)]
    if all(rack for rack, _ in racks) and len(found) >= _FEWEST * len(racks) and len(racks) > 1:
        return [group for rack, group_nodes in racks for group in _blocks(group_nodes, rack)]
    families = groupby(found, key=lambda node: _NUMBER.split(node.node[:_COMPARED], maxsplit=1)[0])
    return [group for _, family in families for group in _blocks(list(family), "")]


def _blocks(nodes: Sequence[NodeRow], rack: str) -> Iterator[NodeGroup]:
    """Yield the nodes in blocks, named by their rack or by their first and last node."""
    for block in _parts(nodes):
        first, last = cut(block[0].node, 24), cut(block[-1].node, 24)
        span = first if len(block) == 1 else f"{first} to {last}"
        yield NodeGroup(cut(rack, 24) if rack and len(nodes) <= _BLOCK else span, block)


def _parts(nodes: Sequence[NodeRow]) -> Iterator[Sequence[NodeRow]]:
    return (nodes[first : first + _BLOCK] for first in range(0, len(nodes), _BLOCK))


def _rack(node: NodeRow) -> str:
    """Return the part of a name up to its first number, where another number follows: r12 of r12n03."""
    found = _RACK.match(node.node[:_COMPARED])
    return found[1] if found else ""


def _natural(name: str) -> tuple[list[tuple[int, int, str]], str]:
    """Return a sort key in which gpu2 comes before gpu10."""
    parts = _NUMBER.split(name[:_COMPARED])
    return [(0, int(part), "") if index % 2 else (1, 0, part) for index, part in enumerate(parts)], name
