"""A cluster with more or fewer nodes of a kind."""

from collections.abc import Sequence
from dataclasses import replace

from gpuwaste.core.errors import UsageError
from gpuwaste.slurm.site.cluster_model import ClusterModel
from gpuwaste.slurm.site.model_checks import MAX_NODES


def kinds_of(model: ClusterModel) -> list[list[str]]:
    """Return the names of nodes that are up, by kinds of equal CPUs, memory, GPUs and features."""
    found: dict[tuple[object, ...], list[str]] = {}
    for node in model.nodes:
        if not node.down:
            gpus = frozenset(node.gpus.items())
            found.setdefault((node.cpus, node.memory_b, gpus, node.features), []).append(node.name)
    return list(found.values())


def with_count(model: ClusterModel, names: Sequence[str], count: int) -> ClusterModel:
    """Return a cluster that has `count` nodes instead of those of some names: without the last ones, or with copies.

    Copies are made of each in turn, named `n1+1`, `n1+2`. They are in the partitions and reservations of what they are
    copied from, and have no outages. Raises UsageError for more than MAX_NODES nodes.
    """
    more = count - len(names)
    if len(model.nodes) + more > MAX_NODES:
        raise UsageError(f"--what-if: {len(model.nodes) + more} nodes: expected at most {MAX_NODES}")
    gone = set(names[count:])
    copies: dict[str, list[str]] = {}
    for k in range(max(0, more) if names else 0):
        copies.setdefault(names[k % len(names)], []).append(f"{names[k % len(names)]}+{k // len(names) + 1}")

    def listed(members: Sequence[str]) -> tuple[str, ...]:
        return tuple(one for name in members if name not in gone for one in (name, *copies.get(name, ())))

    by_name = {node.name: node for node in model.nodes}
    added = {name: replace(by_name[source], name=name) for source, new in copies.items() for name in new}
    return replace(
        model,
        nodes=tuple({**by_name, **added}[name] for name in listed([node.name for node in model.nodes])),
        partitions=tuple(replace(each, nodes=listed(each.nodes)) for each in model.partitions),
        reservations=tuple(replace(each, nodes=listed(each.nodes)) for each in model.reservations),
        outages=tuple(each for each in model.outages if each.node not in gone),
    )
