"""A what-if: the same jobs under a change of requests, limits, policies, priorities or the machine."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from gpuwaste.core.errors import NoDataError, UsageError
from gpuwaste.core.registry import ModuleRegistry
from gpuwaste.jobs.history.job_table import JobTable
from gpuwaste.sim import whatifs
from gpuwaste.sim.trace import GPUS, Ints, Trace
from gpuwaste.slurm.site.cluster_model import ClusterModel
from gpuwaste.slurm.site.model_checks import MAX_NODES

MOST: Final = 8  # what-ifs of one simulation
_FACTOR: Final = re.compile(r"\d{1,3}(?:\.\d{1,6})?", re.ASCII)
_STEP: Final = re.compile(r"[+-]\d{1,9}", re.ASCII)
_LARGEST: Final = 10**9
Refused = Callable[[], NDArray[np.bool_]]


@dataclass(frozen=True, slots=True)
class WhatIfCase:
    """What a what-if changes: the base's jobs and machine; `resource` is what the sizes of both count.

    `trace.row` is a place in `table`. `history` is all that may be learnt from, and `places` the place of each
    of the table's rows in it. `refused` returns which rows of the table policies would have rejected; None where no
    policies are given. `cluster` is what schedulers on nodes play on; None where none of them plays. `counts`:
    whether a scheduler plays that counts, for which every job has to hold some of the resource.
    """

    table: JobTable
    trace: Trace
    processors: int
    resource: str
    history: JobTable
    places: NDArray[np.intp]
    refused: Refused | None = None
    cluster: ClusterModel | None = None
    counts: bool = True

    def nodes(self, name: str) -> ClusterModel:
        """Return the cluster. Raises UsageError for the what-if of that name."""
        if self.cluster is None:
            raise UsageError(f"what-if {name}: needs --scheduler slurm, and nodes with --machine FILE or --live")
        return self.cluster


@dataclass(frozen=True, slots=True)
class WhatIfChange:
    """The changed jobs, some or all of the base's, and the machine; `facts` are counts by name, `notes` sentences.

    `table` is the base's with other requests, None for the base's own; `cluster` likewise. `unfit` are the rows of jobs
    that were left out because they do not fit the machine. `wrapped` [rows of the table] is the row of the job that a
    row became a part of, itself for the others; None where no job was joined. `saved_j` [rows of the table]: joules
    that a job's GPUs draw less, None where that is not known or the change concerns something else.
    """

    trace: Trace
    processors: int
    facts: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    unfit: Ints | None = None
    table: JobTable | None = None
    cluster: ClusterModel | None = None
    wrapped: Ints | None = None
    saved_j: NDArray[np.float64] | None = None


class WhatIf(Protocol):
    """A file of whatifs/; one that changes nodes, partitions or priorities has NEEDS_CLUSTER = True."""

    TITLE: str
    VALUE: str

    def change(self, case: WhatIfCase, value: str) -> WhatIfChange:
        """Return the changed jobs and machine."""
        ...


WHATIFS: Final[ModuleRegistry[WhatIf]] = ModuleRegistry(whatifs, "TITLE", "VALUE", "change")


def parsed(words: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Return name and value of each what-if, which a `=` or `:` separates. Raises UsageError."""
    if len(words) > MOST:
        raise UsageError(f"what-if: {len(words)} changes: expected at most {MOST}")
    found = []
    for word in dict.fromkeys(words):
        name, *more = re.split(r"[=:]", word, maxsplit=1)
        whatif = WHATIFS.get(name)
        if whatif is None:
            raise UsageError(f"what-if {word[:40]!r}: expected one of {', '.join(WHATIFS)}")
        if more and not whatif.VALUE:
            raise UsageError(f"what-if {word[:40]!r}: {name} takes no value")
        found.append((name, "".join(more)))
    return tuple(found)


def resized(size: int, value: str, what: str, of: str, *, least: int = 1) -> int:
    """Return a size changed by a factor such as 1.2 or by a step such as +64 or -64.

    `what` names the what-if and `of` what is resized, for errors. Raises UsageError for less than `least`.
    """
    found = -1
    if _STEP.fullmatch(value):
        found = size + int(value)
    elif _FACTOR.fullmatch(value):
        found = round(size * float(value))
    if not least <= found <= _LARGEST:
        raise UsageError(
            f"what-if {what}={value[:20]!r}: expected a factor such as 1.2, or a step such as +64 or -64, "
            f"that leaves at least {least} ({of}: {size} now)"
        )
    return found


def label(name: str, value: str) -> str:
    """Return a what-if as it is written: `gpus`, `limits=0.9`, `priority:age=0`."""
    return f"{name}{':' if '=' in value else '='}{value}" if value else name


def needs_cluster(name: str) -> bool:
    """Return whether a what-if changes what only a scheduler on nodes uses."""
    return bool(getattr(WHATIFS[name], "NEEDS_CLUSTER", False))


def changed(case: WhatIfCase, name: str, value: str) -> WhatIfChange:
    """Apply a what-if to a case; jobs that do not fit the changed machine are left out and counted.

    Raises UsageError, NoDataError.
    """
    found = WHATIFS[name].change(case, value)
    size = found.processors if found.cluster is None else found.cluster.size(gpus=case.resource == GPUS)
    fits = found.trace.procs <= size
    facts = dict(found.facts)
    if not fits.all():
        facts["jobs larger than the changed machine"] = int(np.count_nonzero(~fits))
    if not fits.any():
        raise NoDataError(f"what-if {name}: no job would be left to simulate")
    unfit = found.trace.row[~fits]
    kept = found.trace.take(np.flatnonzero(fits))
    return replace(found, trace=kept, processors=size, facts=facts, unfit=unfit)


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
        raise UsageError(f"what-if: {len(model.nodes) + more} nodes: expected at most {MAX_NODES}")
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
