"""Reads the machine of a window [since, until), UTC seconds. Every function raises StoreError."""

from collections.abc import Iterator, Sequence
from sys import intern
from typing import Final

from gpuwaste.core.errors import ParseError
from gpuwaste.core.text import short_cache
from gpuwaste.jobs.machine.machine_store import machine_known, stored_outages, stored_reservations
from gpuwaste.jobs.machine.types import ALWAYS, HeldAmount, HeldRun, MachineNode
from gpuwaste.slurm.accounting.tres_amounts import memory_b, tres_or_none
from gpuwaste.slurm.formats.hostlist import expand
from gpuwaste.store.database import Database

__all__ = ["held_runs", "machine_known", "machine_nodes", "outages", "reservations"]
_CACHED: Final = 4096
_Known = dict[tuple[int, int], list[HeldAmount]]


def machine_nodes(
    db: Database, cluster: str, since: int, until: int, *, assume_first: bool = False
) -> list[MachineNode]:
    """Return the nodes of a cluster by node and time.

    `assume_first`: the nodes that the first record has are assumed for all time before it.
    """
    first = machine_known(db, cluster).nodes if assume_first else None
    window = {"cluster": cluster, "since": since, "until": until if first is None else max(until, first + 1)}
    found = [MachineNode(*row) for row in db.run("machine_nodes_of", window).fetchall()]
    return found if first is None else [n._replace(since=ALWAYS) if n.since <= first else n for n in found]


outages = stored_outages
reservations = stored_reservations


def held_runs(db: Database, cluster: str, since: int, until: int) -> Iterator[HeldRun]:
    """Yield the runs that held nodes in the window, by start, with what they held on each node."""
    runs = db.run("machine_runs", {"cluster": cluster, "since": since, "until": until}).fetchall()
    if not runs:
        return
    first = min(run[1] for run in runs)
    rows = db.run("machine_held_of", {"cluster": cluster, "since": first, "until": until}).fetchall()
    known: _Known = {}
    for job_id, run_start, *amount in rows:
        known.setdefault((job_id, run_start), []).append(HeldAmount(*amount))
    for job_id, run_start, start, end, nodes, gpus, cpus, tres in runs:
        names = names_of(nodes)
        amounts, exact = _amounts(names, known.get((job_id, run_start), ()), (gpus, cpus, memory_of(tres)))
        yield HeldRun(job_id, run_start, start, end, exact, amounts)


def _amounts(
    names: Sequence[str], known: Sequence[HeldAmount], whole: tuple[int, int, int]
) -> tuple[tuple[HeldAmount, ...], bool]:
    """Return what is held on each node, and whether that is what slurmctld printed."""
    if len(names) == 1:
        return (HeldAmount(names[0], *whole),), True
    if known and not known[0].node:
        return tuple(known[0]._replace(node=name) for name in names), True
    if known:
        return tuple(known), True
    return tuple(spread(names, whole)), False


def spread(names: Sequence[str], whole: tuple[int, int, int]) -> Iterator[HeldAmount]:
    """Yield amounts of GPUs, CPUs and bytes divided evenly among nodes; the first nodes get what is left over."""
    each, rest = zip(*(divmod(amount, len(names)) for amount in whole), strict=True) if names else ((), ())
    for number, name in enumerate(names):
        yield HeldAmount(name, *(share + (number < more) for share, more in zip(each, rest, strict=True)))


@short_cache(_CACHED)
def names_of(nodes: str) -> tuple[str, ...]:
    """Return the names of a hostlist, each once; none where it cannot be read."""
    try:
        return tuple(dict.fromkeys(map(intern, expand(nodes))))
    except ParseError:
        return ()


@short_cache(_CACHED)
def memory_of(tres: str) -> int:
    """Return the bytes of memory of an allocation's TRES, 0 where they are not known."""
    try:
        return memory_b(tres_or_none(tres)) or 0
    except ParseError:
        return 0
