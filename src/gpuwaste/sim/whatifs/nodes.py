"""More or fewer nodes of one type: `nodes:a100=+4`, `nodes:h100=1.5`, `nodes:cpu=-8` for those without GPUs."""

from typing import Final

from gpuwaste.core.errors import UsageError
from gpuwaste.core.text import words_of
from gpuwaste.sim.whatif import WhatIfCase, WhatIfChange, resized, with_count
from gpuwaste.slurm.site.cluster_model import ClusterModel

TITLE: Final = "another number of nodes of a type"
VALUE: Final = "TYPE=N"
NEEDS_CLUSTER: Final = True
_WITHOUT: Final = "cpu"  # nodes without GPUs
_UNNAMED: Final = "gpu"  # GPUs without a type
_NOTES: Final = (
    "A new node is a copy of one of its type: same size, same partitions. It never fails.",
    "Nodes that are removed are the last of their type.",
)


def change(case: WhatIfCase, value: str) -> WhatIfChange:
    """Return the same jobs on a cluster with another number of nodes of a type. Raises UsageError."""
    cluster = case.nodes("nodes")
    types = _by_type(cluster)
    kind, given, count = value.partition("=")
    names = types.get(kind.lower())
    if names is None or not given:
        raise UsageError(
            f"what-if nodes:{words_of(value, 40)}: expected a type of node and a number, as in "
            f"nodes:{next(iter(types))}=+4; types: {words_of(', '.join(types), 200)}"
        )
    size = resized(len(names), count, f"nodes:{kind}", f"type {kind}", least=0)
    found = with_count(cluster, names, size)
    if not any(not node.down for node in found.nodes):
        raise UsageError(f"what-if nodes:{words_of(value, 40)}: leaves no node")
    facts = {f"nodes of type {kind}": size, f"nodes of type {kind} in the base": len(names)}
    return WhatIfChange(case.trace, case.processors, facts, _NOTES, cluster=found)


def _by_type(cluster: ClusterModel) -> dict[str, list[str]]:
    """Return the names of nodes that are up by their types, in lower case; a node with several GPU types has each."""
    found: dict[str, list[str]] = {}
    for node in cluster.nodes:
        if not node.down:
            for kind in node.gpus or (_WITHOUT,):
                found.setdefault((kind or _UNNAMED).lower(), []).append(node.name)
    return found
