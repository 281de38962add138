"""Reads the machine of a window [since, until), UTC seconds. Every function raises StoreError."""

from collections.abc import Iterator, Sequence
from sys import intern
from typing import Final

from gpuwaste.core.errors import ParseError
from gpuwaste.core.text import short_cache
from gpuwaste.jobs.machine.machine_store import machine_known, stored_outages, stored_reservations
from gpuwaste.jobs.machine.types import ALWAYS, POOL, HeldAmount, MachineNode, RunOnNodes
from gpuwaste.slurm.accounting.tres_amounts import memory_b, tres_or_none
from gpuwaste.slurm.formats.hostlist import NO_NODES, expand
from gpuwaste.store.database import Database

__all__ = ["held_runs", "machine_known", "machine_nodes", "outages", "reservations"]
_CACHED: Final = 16_384
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


def held_runs(db: Database, cluster: str, since: int, until: int) -> Iterator[RunOnNodes]:
    """Yield the runs that held nodes in the window, by start, with what they held on each node."""
    runs = db.run("machine_runs", {"cluster": cluster, "since": since, "until": until}).fetchall()
    known = _known(db, cluster, min((run[1] for run in runs), default=until), until)
    cache: dict[tuple[str, int, int, str], tuple[tuple[HeldAmount, ...], bool]] = {}
    for job_id, run_start, start, end, nodes, gpus, cpus, tres in runs:
        named = known.get((job_id, run_start))
        if named is not None:
            amounts, exact = _printed(nodes, named), True
        else:
            key = nodes, gpus, cpus, tres
            if key not in cache:
                if len(cache) >= _CACHED:
                    cache.clear()
                names = names_of(nodes) or (POOL,)
                cache[key] = tuple(spread(names, (gpus, cpus, memory_of(tres)))), len(names) == 1
            amounts, exact = cache[key]
        yield RunOnNodes(job_id, run_start, start, end, exact, amounts)


def _known(db: Database, cluster: str, since: int, until: int) -> dict[tuple[int, int], list[HeldAmount]]:
    """Return what slurmctld printed of runs that started in the window."""
    found: dict[tuple[int, int], list[HeldAmount]] = {}
    rows = db.run("machine_held_of", {"cluster": cluster, "since": since, "until": until}).fetchall()
    for job_id, run_start, *amount in rows:
        found.setdefault((job_id, run_start), []).append(HeldAmount(*amount))
    return found


def _printed(nodes: str, rows: Sequence[HeldAmount]) -> tuple[HeldAmount, ...]:
    """Return the amounts by node; a row without a node is of each of them."""
    return tuple(rows) if rows[0].node else tuple(rows[0]._replace(node=name) for name in names_of(nodes))


def spread(names: Sequence[str], whole: tuple[int, int, int]) -> Iterator[HeldAmount]:
    """Yield amounts of GPUs, CPUs and bytes divided evenly among nodes; the first nodes get what is left over."""
    if len(names) == 1:
        yield HeldAmount(names[0], *whole)
        return
    each, rest = zip(*(divmod(amount, len(names)) for amount in whole), strict=True) if names else ((), ())
    for number, name in enumerate(names):
        yield HeldAmount(name, *(share + (number < more) for share, more in zip(each, rest, strict=True)))


@short_cache(_CACHED)
def names_of(nodes: str) -> tuple[str, ...]:
    """Return the names of a hostlist, each once; none where it cannot be read."""
    if nodes.isalnum() and nodes not in NO_NODES:
        return (intern(nodes),)
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
