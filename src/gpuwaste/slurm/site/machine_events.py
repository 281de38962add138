"""Node events and reservations of a time: from sacctmgr, from scontrol, or from texts that these commands printed.

Reason= is never read: it is free text, which can name people and can hold the separator. Columns before it are safe.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, tzinfo
from itertools import islice
from typing import Final, Generic, TypeVar

from gpuwaste.core.errors import ParseError
from gpuwaste.core.text import storable
from gpuwaste.slurm.accounting.tres_amounts import tres_or_none
from gpuwaste.slurm.formats.hostlist import NO_NODES, expand
from gpuwaste.slurm.formats.slurm_times import parse_time_s
from gpuwaste.slurm.site.associations import EVENT
from gpuwaste.slurm.site.node_states import is_usable
from gpuwaste.slurm.site.site_fields import records
from gpuwaste.slurm.site.slurm_values import whole

RESERVATION: Final = ("Name", "TimeStart", "TimeEnd", "Flags", "TRES", "NodeNames")
MAX_ROWS: Final = 200_000  # of one answer; the last ones are kept
_LONGEST_NAME: Final = 256
_LONGEST_WORDS: Final = 512
_LONGEST_NODES: Final = 65_536
_SEPARATOR: Final = "|"
_FREE_TEXT: Final = "Reason"
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class NodeOutage:
    """A node whose state keeps jobs away from `start` until `end`, UTC seconds (None: continues); state as printed."""

    node: str
    start: int
    end: int | None
    state: str


@dataclass(frozen=True, slots=True)
class ReservedNodes:
    """The nodes (a hostlist) and flags of a reservation from `start` until `end`, UTC seconds.

    `cpus` is the number of reserved CPUs, None where it is not printed: with fewer than the nodes have, jobs outside
    the reservation can use the rest.
    """

    name: str
    start: int
    end: int
    nodes: str
    flags: str = ""
    cpus: int | None = None


@dataclass(frozen=True, slots=True)
class PrintedRows(Generic[_T]):
    """What could be read of an output; `bad` rows could not, the first one for the reason `error`."""

    rows: tuple[_T, ...]
    bad: int = 0
    error: str = ""
    cut: bool = False
    """Whether there were more than MAX_ROWS rows."""


@dataclass(slots=True)
class _Reading(Generic[_T]):
    rows: list[_T] = field(default_factory=list)
    bad: int = 0
    error: str = ""

    def fail(self, error: object) -> None:
        self.error = self.error or str(error)
        self.bad += 1

    def done(self) -> PrintedRows[_T]:
        cut = len(self.rows) > MAX_ROWS
        return PrintedRows(tuple(self.rows[-MAX_ROWS:]), self.bad, self.error, cut)


def parse_events(
    text: str, columns: Sequence[str] = (), *, cluster: str = "", zone: tzinfo = UTC
) -> PrintedRows[NodeOutage]:
    """Read `sacctmgr -P show event`: the events in which a node's state kept jobs away.

    Without `columns` the first line names them. Rows of another cluster than `cluster` are left out. Raises ParseError
    where a needed column is missing.
    """
    reading = _Reading[NodeOutage]()
    for number, row in _rows(text, columns, EVENT, cluster):
        try:
            node, start, end = row["NodeName"], parse_time_s(row["TimeStart"], zone), parse_time_s(row["TimeEnd"], zone)
            if not node or is_usable(row["State"]):
                continue  # an event of the entire cluster, or of a node that takes jobs
            if start is None or len(node) > _LONGEST_NAME:
                reading.fail(f"line {number}: expected a node and the start of its event")
            elif end is None or end > start:
                reading.rows.append(NodeOutage(storable(node), start, end, _words(row["State"])))
        except (ParseError, KeyError) as error:
            reading.fail(f"line {number}: {error}")
    return reading.done()


def parse_reserved(
    text: str, columns: Sequence[str] = (), *, cluster: str = "", zone: tzinfo = UTC
) -> PrintedRows[ReservedNodes]:
    """Read `sacctmgr -P show reservation`, as parse_events does; needs the columns of RESERVATION."""
    reading = _Reading[ReservedNodes]()
    for number, row in _rows(text, columns, RESERVATION, cluster):
        try:
            fields = {"tres": row["TRES"], "nodes": row["NodeNames"], "flags": row["Flags"]}
            _reserve(reading, row["Name"], row["TimeStart"], row["TimeEnd"], fields, zone)
        except (ParseError, KeyError) as error:
            reading.fail(f"line {number}: {error}")
    return reading.done()


def parse_shown_reservations(text: str, *, zone: tzinfo = UTC) -> PrintedRows[ReservedNodes]:
    """Read `scontrol show reservation`: those that have not ended. Never raises."""
    reading = _Reading[ReservedNodes]()
    for found in records(text, "ReservationName"):
        name = found["reservationname"]
        try:
            _reserve(reading, name, found.get("starttime", ""), found.get("endtime", ""), found, zone)
        except ParseError as error:
            reading.fail(f"reservation {name[:40]}: {error}")
    return reading.done()


def of_entire_nodes(found: PrintedRows[ReservedNodes], cpus: Mapping[str, int]) -> PrintedRows[ReservedNodes]:
    """Leave out reservations of some CPUs of nodes with `cpus`: jobs outside them can use the rest of the nodes."""
    return replace(found, rows=tuple(one for one in found.rows if _has_entire_nodes(one, cpus)))


def _has_entire_nodes(reserved: ReservedNodes, cpus: Mapping[str, int]) -> bool:
    if reserved.cpus is None:
        return True
    try:
        return reserved.cpus >= sum(cpus.get(node, 0) for node in expand(reserved.nodes))
    except ParseError:
        return False


def _reserve(  # noqa: PLR0917 the fields of one row
    reading: _Reading[ReservedNodes], name: str, begin: str, finish: str, fields: Mapping[str, str], zone: tzinfo
) -> None:
    start, end = parse_time_s(begin, zone), parse_time_s(finish, zone)
    nodes = fields.get("nodes", "")
    if start is None or end is None or len(nodes) > _LONGEST_NODES:
        raise ParseError("expected a start, an end, and nodes")
    if nodes in NO_NODES or end <= start:
        return  # of licenses or burst buffers, or removed before it began
    reserved = tres_or_none(fields.get("tres", "")).get("cpu", "")
    cpus = whole(reserved, "cpu") if reserved else None
    flags = _words(fields.get("flags", ""))
    reading.rows.append(ReservedNodes(storable(name[:_LONGEST_NAME]), start, end, storable(nodes), flags, cpus))


def _rows(
    text: str, columns: Sequence[str], needed: Sequence[str], cluster: str
) -> Iterable[tuple[int, Mapping[str, str]]]:
    """Yield the lines by their columns; those behind a cell with a separator have wrong values, or none."""
    lines = enumerate(text.split("\n"), 1)
    if not columns:
        columns = next((line.split(_SEPARATOR) for _, line in lines if line.strip()), [])
        columns = columns[: columns.index(_FREE_TEXT)] if _FREE_TEXT in columns else columns
        missing = [name for name in needed if name not in columns]
        if missing:
            raise ParseError(f"the first line does not name {', '.join(missing)}: use format={','.join(needed)}")
    for number, line in lines:
        if not line.strip():
            continue
        cells = [cell.strip() for cell in islice(line.split(_SEPARATOR), len(columns))]
        row = dict(zip(columns, cells, strict=False))
        if not cluster or row.get("Cluster", cluster) == cluster:
            yield number, row


def _words(text: str) -> str:
    return storable("" if text in NO_NODES else text[:_LONGEST_WORDS])
