"""A cluster's nodes, partitions and reservations as the arrays of a board."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gpuwaste.core.errors import NoDataError
from gpuwaste.sim.slurm import board as b
from gpuwaste.sim.slurm.board import Flags, Ints
from gpuwaste.slurm.site.cluster_model import ClusterModel


@dataclass(frozen=True, slots=True)
class NodeLayout:
    """Nodes that are up, by weight, then as the model has them; those that are down for good are left out.

    `full` [m, FIRST_TYPE + T] are idle nodes, `in_partition` [P, K] and `reserved` [R, K] say which classes of nodes
    belong where, `nodes_of` [P, m] which nodes. `events` [e, 3] as play() has them.
    """

    names: tuple[str, ...]
    gpu_types: tuple[str, ...]
    full: Ints
    in_partition: Flags
    reserved: Flags
    reservations: Ints
    nodes_of: Flags
    events: Ints


def layout(model: ClusterModel) -> NodeLayout:
    """Lay out a cluster. Raises NoDataError for one without partitions or without a node that is up."""
    up = sorted((node for node in model.nodes if not node.down), key=lambda node: node.weight)
    if not up or not model.partitions:
        raise NoDataError(f"cluster {model.name}: no {'partition' if up else 'node that is up'}: nothing can run there")
    numbers = {node.name: k for k, node in enumerate(up)}
    places = {node.name: k for k, node in enumerate(model.nodes)}
    types = tuple(sorted({name for node in up for name in node.gpus}))
    full = np.zeros((len(up), b.FIRST_TYPE + len(types)), np.int64)
    for row, node in zip(full, up, strict=True):
        row[b.FREE_CPUS], row[b.FREE_MEMORY], row[b.FREE_GPUS] = node.cpus, node.memory_b, node.gpu_count
        row[b.FIRST_TYPE :] = [node.gpus.get(name, 0) for name in types]
    nodes_of = _members([each.nodes for each in model.partitions], numbers)
    held = _members([each.nodes for each in model.reservations], numbers)
    alike = np.concatenate([full, nodes_of.T, held.T], axis=1)
    _, first, classes = np.unique(alike, axis=0, return_index=True, return_inverse=True)
    full[:, b.CLASS], full[:, b.HOLDING] = classes.reshape(-1), -1
    full[:, b.WEIGHT], full[:, b.PLACE] = [node.weight for node in up], [places[node.name] for node in up]
    bounds = np.array([(each.start, each.end) for each in model.reservations], np.int64).reshape(-1, 2)
    events = [(int(time), -1, 0) for time in bounds.ravel()]
    for outage in model.outages:
        if outage.node in numbers and outage.end > outage.start:
            events += [(outage.start, numbers[outage.node], 1), (outage.end, numbers[outage.node], -1)]
    return NodeLayout(
        names=tuple(node.name for node in up),
        gpu_types=types,
        full=full,
        in_partition=nodes_of[:, first],
        reserved=held[:, first],
        reservations=bounds,
        nodes_of=nodes_of,
        events=np.array(sorted(events), np.int64).reshape(-1, 3),
    )


def _members(groups: Sequence[Sequence[str]], numbers: dict[str, int]) -> Flags:
    found = np.zeros((len(groups), len(numbers)), np.bool_)
    for row, names in zip(found, groups, strict=True):
        row[[numbers[name] for name in names if name in numbers]] = True
    return found
