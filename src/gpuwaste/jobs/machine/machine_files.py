"""Files that describe the machine to a store without a hub: slurm.conf or TOML, node events, reservations.

Events and reservations are what sacctmgr or scontrol printed, recognized by their first line.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, tzinfo
from pathlib import Path
from typing import Any, Final

from gpuwaste.core.errors import ParseError, UsageError
from gpuwaste.core.text import decoded, harmless
from gpuwaste.jobs.machine import machine_store
from gpuwaste.jobs.machine.types import ALWAYS
from gpuwaste.slurm.formats.hostlist import compressed
from gpuwaste.slurm.formats.log_file import read_lines
from gpuwaste.slurm.site.cluster_model import DOWN, NEVER, ClusterModel, Node
from gpuwaste.slurm.site.machine_events import (
    NodeOutage,
    PrintedRows,
    ReservedNodes,
    parse_events,
    parse_reserved,
    parse_shown_reservations,
)
from gpuwaste.slurm.site.machine_file import read_machine
from gpuwaste.store.database import Database

_MAX_B: Final = 256 << 20
_SHOWN: Final = "ReservationName="


@dataclass(frozen=True, slots=True)
class _PrintedKind:
    """What a command printed: how it is parsed (text, cluster, zone) and stored, and the mark of what is known."""

    parse: Callable[[str, str, tzinfo], PrintedRows[Any]]
    replace: Callable[[Database, str, Sequence[Any], int], bool]
    mark: machine_store.Kind

    def store(self, db: Database, cluster: str, rows: Sequence[Any]) -> None:
        """Store the rows; the file is taken to have all that there were."""
        self.replace(db, cluster, rows, ALWAYS)
        machine_store.set_complete(db, self.mark, cluster, ALWAYS, NEVER)


_EVENTS: Final = _PrintedKind(
    lambda text, cluster, zone: parse_events(text, cluster=cluster, zone=zone),
    machine_store.replace_outages,
    "machine_events",
)
_RESERVED: Final = _PrintedKind(
    lambda text, cluster, zone: parse_reserved(text, cluster=cluster, zone=zone),
    machine_store.replace_reservations,
    "machine_reservations",
)
_PRESENT: Final = replace(_RESERVED, parse=lambda text, _, zone: parse_shown_reservations(text, zone=zone))


def bring_machine(db: Database, path: Path, zone: tzinfo = UTC) -> tuple[str, ...]:
    """Store what a file describes; dates in it are of `zone`. Returns a note where rows could not be read.

    Raises ConfigError, ParseError and UsageError, which name the file, and StoreError.
    """
    clusters = [row["cluster"] for row in db.rows("job_clusters")]
    text = "" if path.is_dir() else _text(path)
    head = text.lstrip().partition("\n")[0].strip()
    columns = head.split("|")
    if not head.startswith(_SHOWN) and "TimeStart" not in columns:
        _store_model(db, path, clusters, read_machine(path))
        return ()
    kind = _PRESENT if head.startswith(_SHOWN) else _EVENTS if "NodeName" in columns else _RESERVED
    if "Cluster" not in columns:
        clusters = [_only(path, clusters)]
    bad, error = 0, ""
    for cluster in clusters:
        found = _parsed(path, kind, text, cluster, zone)
        if not found.rows and len(clusters) == 1:  # the jobs' file may not name the cluster
            found = _parsed(path, kind, text, "", zone)
        kind.store(db, cluster, found.rows)
        bad, error = max(bad, found.bad), error or found.error
    return (f"{bad} rows of {harmless(path.name)} could not be read. The first: {harmless(error)}.",) if bad else ()


def store_model(db: Database, cluster: str, model: ClusterModel) -> None:
    """Store the nodes, outages and reservations of a model as those of all times. Raises StoreError."""
    nodes = [
        machine_store.configuration(replace(node, partitions=partitions), ALWAYS)
        for node, partitions in _with_partitions(model)
    ]
    machine_store.clear_nodes(db, cluster)
    machine_store.add_nodes(db, cluster, nodes)
    machine_store.set_mark(db, "machine", cluster, ALWAYS)
    machine_store.set_mark(db, "machine_inferred", cluster, 0)
    if model.outages:
        ends = ((one, None if one.end >= NEVER else one.end) for one in model.outages)
        _EVENTS.store(db, cluster, [NodeOutage(one.node, one.start, end, DOWN) for one, end in ends])
    if model.reservations:
        rows = [ReservedNodes(one.name, one.start, one.end, compressed(one.nodes)) for one in model.reservations]
        _RESERVED.store(db, cluster, rows)


def _store_model(db: Database, path: Path, clusters: Sequence[str], model: ClusterModel) -> None:
    store_model(db, model.name if model.name in clusters else _only(path, clusters), model)


def _with_partitions(model: ClusterModel) -> list[tuple[Node, tuple[str, ...]]]:
    """Return the nodes with the names of their partitions."""
    names: dict[str, list[str]] = {node.name: [] for node in model.nodes}
    for partition in model.partitions:
        for node in partition.nodes:
            names[node].append(partition.name)
    return [(node, tuple(names[node.name])) for node in model.nodes]


def _parsed(path: Path, kind: _PrintedKind, text: str, cluster: str, zone: tzinfo) -> PrintedRows[Any]:
    try:
        return kind.parse(text, cluster, zone)
    except ParseError as error:
        raise ParseError(f"{path}: {error}") from error


def _only(path: Path, clusters: Sequence[str]) -> str:
    if len(clusters) == 1:
        return clusters[0]
    known = harmless(", ".join(clusters))[:200] or "no cluster"
    raise UsageError(f"--machine {path}: names no cluster of the jobs, which are of {known}")


def _text(path: Path) -> str:
    """Return a file's text, decompressed. Raises UsageError, ParseError."""
    parts, size = [], 0
    for line in read_lines(path):
        size += len(line)
        if size > _MAX_B:
            raise ParseError(f"{path}: larger than {_MAX_B >> 20} MiB: print fewer rows")
        parts.append(line)
    return decoded(b"".join(parts))
