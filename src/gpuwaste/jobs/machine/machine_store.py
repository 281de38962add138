"""Writes what is known of the machine. A function's caller holds the transaction; nothing is written without a change.

Marks (MachineKnown): `KIND:CLUSTER` is since when something is known, `KIND_until:CLUSTER` until when it is complete.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal

from gpuwaste.jobs.machine.types import HeldAmount, MachineKnown, MachineNode
from gpuwaste.slurm.clients.slurmctld_jobs import RunningJob
from gpuwaste.slurm.site.cluster_model import NEVER, Node
from gpuwaste.slurm.site.machine_events import NodeOutage, ReservedNodes
from gpuwaste.store.database import Database
from gpuwaste.store.hub.hub_store import mark_of
from gpuwaste.store.hub.json_rows import to_json

Kind = Literal["machine_events", "machine_reservations"]
MOST: Final = (1 << 31) - 1  # of an INTEGER
_LONGEST: Final = 4096  # characters of a node's partitions or features
_NOT_INSTALLED: Final = "FUTURE"


def configuration(node: Node, since: int) -> MachineNode:
    """Return a node as it is stored."""
    return MachineNode(
        node.name,
        since,
        None,
        min(node.gpu_count, MOST),
        ",".join(sorted(filter(None, node.gpus)))[:_LONGEST],
        min(node.cpus, MOST),
        node.memory_b,
        ",".join(sorted(node.partitions))[:_LONGEST],
        ",".join(sorted(node.features))[:_LONGEST],
    )


def write_nodes(db: Database, cluster: str, nodes: Iterable[Node], now: int) -> bool:
    """Store the nodes as they are now: changed and missing ones end, changed and new ones begin. Raises StoreError.

    Returns whether anything changed. No nodes at all is not believed. What runs alone suggested is removed.
    """
    found = {n.name: configuration(n, now) for n in nodes if _NOT_INSTALLED not in n.state.upper().split("+")}
    if not found:
        return False
    if mark(db, "machine_inferred", cluster):
        clear_nodes(db, cluster)
        set_mark(db, "machine_inferred", cluster, 0)
        set_mark(db, "machine", cluster, now)
    known = {row[0]: MachineNode(*row) for row in db.run("machine_nodes_now", {"cluster": cluster}).fetchall()}
    ended = [name for name, node in known.items() if name not in found or _differ(found[name], node)]
    begun = [node for name, node in found.items() if name not in known or _differ(node, known[name])]
    if ended:
        db.run("machine_nodes_close", {"cluster": cluster, "nodes": ended, "now": now}).fetchall()
    add_nodes(db, cluster, begun)
    if mark(db, "machine", cluster) is None:
        set_mark(db, "machine", cluster, now)
    return bool(ended or begun)


def add_nodes(db: Database, cluster: str, nodes: Iterable[MachineNode]) -> None:
    """Add rows of nodes. Raises StoreError."""
    _add(db, "machine_nodes_add", cluster, [node._asdict() for node in nodes])


def clear_nodes(db: Database, cluster: str) -> None:
    """Remove all nodes of a cluster. Raises StoreError."""
    db.run("machine_nodes_clear", {"cluster": cluster}).fetchall()


def replace_outages(db: Database, cluster: str, outages: Iterable[NodeOutage], since: int) -> bool:
    """Replace the stored outages that reach beyond `since`, UTC seconds; returns whether any changed.

    Raises StoreError.
    """
    new = {(one.node, one.start): one for one in outages if one.end is None or one.end > since}
    old = stored_outages(db, cluster, since, NEVER)
    changed = set(old) != set(new.values())
    if changed:
        db.run("machine_outages_clear", {"cluster": cluster, "since": since}).fetchall()
        rows = [{"node": o.node, "start": o.start, "end": o.end, "state": o.state} for o in new.values()]
        _add(db, "machine_outages_add", cluster, rows)
    return changed


def stored_outages(db: Database, cluster: str, since: int, until: int) -> list[NodeOutage]:
    """Return the outages of a window. Raises StoreError."""
    window = {"cluster": cluster, "since": since, "until": until}
    return [NodeOutage(*row) for row in db.run("machine_outages_of", window).fetchall()]


def replace_reservations(db: Database, cluster: str, reserved: Iterable[ReservedNodes], since: int) -> bool:
    """Replace reservations as `replace_outages` does outages. Raises StoreError."""
    new = {(one.name, one.start, one.nodes): one for one in reserved if one.end > since}
    rows = [{"name": r.name, "start": r.start, "end": r.end, "nodes": r.nodes, "flags": r.flags} for r in new.values()]
    old = stored_reservations(db, cluster, since, NEVER)
    changed = {_period(one) for one in old} != {_period(one) for one in new.values()}
    if changed:
        db.run("machine_reservations_clear", {"cluster": cluster, "since": since}).fetchall()
        _add(db, "machine_reservations_add", cluster, rows)
    return changed


def stored_reservations(db: Database, cluster: str, since: int, until: int) -> list[ReservedNodes]:
    """Return the reservations of a window. Raises StoreError."""
    window = {"cluster": cluster, "since": since, "until": until}
    return [ReservedNodes(*row) for row in db.run("machine_reservations_of", window).fetchall()]


def held_rows(job: RunningJob) -> list[dict[str, Any]]:
    """Return the rows of a run's amounts by node: none for one node, one where they are the same on all nodes."""
    by_node = {
        name: (held.gpus, held.cpus, held.memory_b)
        for name, held in job.nodes.items()
        if held.cpus is not None and held.memory_b is not None
    }
    if len(by_node) < 2 or len(by_node) != len(job.nodes):  # noqa: PLR2004 nodes
        return []
    amounts = {"": next(iter(by_node.values()))} if len(set(by_node.values())) == 1 else by_node
    return [
        {"job_id": job.job_id, "run_start": job.start} | HeldAmount(node, *of_node)._asdict()
        for node, of_node in amounts.items()
    ]


def add_held(db: Database, cluster: str, rows: Sequence[dict[str, Any]]) -> None:
    """Store rows of `held_rows`, but for runs that have some. Raises StoreError."""
    _add(db, "machine_held_add", cluster, rows)


def set_complete(db: Database, kind: Kind, cluster: str, since: int, until: int) -> None:
    """Note that what is stored is complete from `since` until `until`. Raises StoreError."""
    first = mark(db, kind, cluster)
    if first is None or since < first:
        set_mark(db, kind, cluster, since)
    set_mark(db, f"{kind}_until", cluster, until)


def mark(db: Database, kind: str, cluster: str) -> int | None:
    """Return a mark of a cluster. Raises StoreError."""
    return mark_of(db, f"{kind}:{cluster}")


def set_mark(db: Database, kind: str, cluster: str, value: int) -> None:
    """Set a mark of a cluster. Raises StoreError."""
    db.run("mark_set", {"key": f"{kind}:{cluster}", "value": value}).fetchall()


def machine_known(db: Database, cluster: str) -> MachineKnown:
    """Return from when on, and until when, what is known. Raises StoreError."""
    return MachineKnown(
        nodes=mark(db, "machine", cluster),
        events=mark(db, "machine_events", cluster),
        events_until=mark(db, "machine_events_until", cluster),
        reservations=mark(db, "machine_reservations", cluster),
        reservations_until=mark(db, "machine_reservations_until", cluster),
        inferred=bool(mark(db, "machine_inferred", cluster)),
    )


def _add(db: Database, query: str, cluster: str, rows: Sequence[dict[str, Any]]) -> None:
    if rows:
        db.run(query, {"cluster": cluster, "rows": to_json(rows)}).fetchall()


def _differ(one: MachineNode, other: MachineNode) -> bool:
    return one[3:] != other[3:]  # all but the name and the time


def _period(reserved: ReservedNodes) -> tuple[str, int, int, str, str]:
    return reserved.name, reserved.start, reserved.end, reserved.nodes, reserved.flags
