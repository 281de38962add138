"""The machine as far as runs alone show it: each node has at least what runs held there at the same time."""

from collections.abc import Iterator
from typing import Any, Final

from gpuwaste.jobs.machine import machine_store
from gpuwaste.jobs.machine.machine_reads import memory_of, names_of
from gpuwaste.jobs.machine.machine_store import MOST
from gpuwaste.jobs.machine.types import POOL, MachineNode
from gpuwaste.slurm.site.cluster_model import NEVER
from gpuwaste.store.database import Database
from gpuwaste.store.hub.json_rows import to_json

_PAGE_NAMES: Final = 100_000  # that are staged at a time
_MOST_NAMES: Final = 8_000_000  # in all hostlists; the runs of further ones are left out


def infer_nodes(db: Database, cluster: str) -> bool:
    """Store the nodes that a cluster's runs show, where nothing better is stored; return whether there are any.

    A node begins with its first run. The mark `machine_inferred` says so. Raises StoreError.
    """
    known = machine_store.machine_known(db, cluster)
    if known.nodes is not None and not known.inferred:
        return False
    db.run("machine_stage_create").fetchall()
    for page in _pages(db, cluster):
        db.run("machine_stage_names", {"rows": to_json(page)}).fetchall()
    texts = db.run("run_amounts", {"cluster": cluster}).fetchall()
    db.run(
        "machine_stage_memory", {"rows": to_json({"alloc_tres": t, "memory_b": memory_of(t)} for (t,) in texts)}
    ).fetchall()
    found = db.run("machine_inferred", {"cluster": cluster, "never": NEVER}).fetchall()
    nodes = [
        MachineNode(node, since, None, min(gpus, MOST), kind, min(cpus, MOST), memory_b, partitions, "")
        for node, since, gpus, kind, cpus, memory_b, partitions in found
    ] or _pool(db, cluster)
    machine_store.clear_nodes(db, cluster)
    machine_store.add_nodes(db, cluster, nodes)
    if nodes:
        machine_store.set_mark(db, "machine", cluster, min(node.since for node in nodes))
        machine_store.set_mark(db, "machine_inferred", cluster, 1)
    return bool(nodes)


def _pool(db: Database, cluster: str) -> list[MachineNode]:
    """Return all nodes as one, where no run names its nodes."""
    return [
        MachineNode(POOL, since, None, min(gpus, MOST), "", min(cpus, MOST), 0, partitions, "")
        for since, gpus, cpus, partitions in db.run("machine_pool", {"cluster": cluster, "never": NEVER}).fetchall()
    ]


def _pages(db: Database, cluster: str) -> Iterator[list[dict[str, Any]]]:
    """Yield the hostlists with their names, in parts."""
    page: list[dict[str, Any]] = []
    size = total = 0
    for (nodes,) in db.run("run_node_lists", {"cluster": cluster}).fetchall():
        names = names_of(nodes)
        total += len(names)
        if total > _MOST_NAMES:
            break
        page.append({"nodes": nodes, "names": names})
        size += len(names)
        if size >= _PAGE_NAMES:
            yield page
            page, size = [], 0
    if page:
        yield page
