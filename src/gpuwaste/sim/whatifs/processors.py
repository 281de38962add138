"""A larger or smaller machine: times a factor, or some processors (or GPUs, where it counts those) more or fewer."""

from typing import Final

from gpuwaste.core.errors import UsageError
from gpuwaste.sim.whatif import WhatIfCase, WhatIfChange, kinds_of, resized, with_count

TITLE: Final = "another size of the machine"
VALUE: Final = "F"
_NOTES: Final = (
    "The number of nodes of each kind changes by that factor, rounded; new nodes are copies and never fail.",
)


def change(case: WhatIfCase, value: str) -> WhatIfChange:
    """Return the same jobs on the changed machine: where it has nodes, as many of each kind. Raises UsageError."""
    size = resized(case.processors, value, "processors", "machine")
    if case.cluster is None:
        return WhatIfChange(case.trace, size, {"size of the machine": size, "size of the base": case.processors})
    found = case.cluster
    for names in kinds_of(found):
        found = with_count(found, names, round(len(names) * size / case.processors))
    if not found.nodes or found.nodes == case.cluster.nodes:
        raise UsageError(
            f"what-if processors={value[:20]!r}: leaves {'no node' if not found.nodes else 'the nodes as they are'}: "
            "the number of nodes of each kind changes by the same factor, rounded; for one type use what-if nodes"
        )
    facts = {"nodes": len(found.nodes), "nodes of the base": len(case.cluster.nodes)}
    return WhatIfChange(case.trace, size, facts, _NOTES, cluster=found)
