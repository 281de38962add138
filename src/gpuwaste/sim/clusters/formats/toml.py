"""The TOML of a machine: ten lines for a small one, the whole of a live one as --write-machine writes it."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

from gpuwaste.core.errors import ConfigError
from gpuwaste.core.typed_toml import nearest, parse_toml, read_table
from gpuwaste.sim.cluster import ClusterModel, Failures, Node, Partition
from gpuwaste.sim.clusters import tables
from gpuwaste.sim.clusters.checked import MAX_NODES
from gpuwaste.sim.clusters.described import DescribedCluster, Kind, Place, located
from gpuwaste.sim.clusters.table_values import READERS
from gpuwaste.slurm.formats.conf_file import read_bounded

TITLE: Final = "TOML with [[nodes]] (docs/how-to/simulate.md)"
_TABLE = re.compile(rb"^[ \t]*\[\[?[ \t]*\w+[ \t]*\]", re.MULTILINE)
_HEADER = re.compile(r"[ \t]*\[\[?[ \t]*(\w+)[ \t]*\]")
_LISTS: Final[tuple[Kind, ...]] = ("nodes", "partitions", "qos", "associations", "reservations", "outages")
_KEYS: Final = frozenset({"name", "settings", "failures", *_LISTS})
_ONLY: Final = "batch"  # the partition of a file that describes none
_T = TypeVar("_T")


def reads(path: Path, head: bytes) -> bool:
    """Tell whether it is TOML."""
    return not path.is_dir() and (path.suffix == ".toml" or (path.suffix != ".conf" and bool(_TABLE.search(head))))


def read(path: Path) -> DescribedCluster:
    """Read it. Raises ConfigError, which names file, line and key."""
    raw = read_bounded(path)
    data = parse_toml(raw, str(path))
    for key in data:
        if key not in _KEYS:
            raise ConfigError(f"{path}: unknown key {key!r}{nearest(key, set(_KEYS))}")
    return _File(path, data, _lines(raw.decode())).described()


class _File:
    """One file as parsed; `lines` has the line of each table."""

    def __init__(self, path: Path, data: Mapping[str, Any], lines: Mapping[Place, int]) -> None:
        self._path = path
        self._data = data
        self._lines = lines
        self._places: dict[Place, str] = {}

    def described(self) -> DescribedCluster:
        """Return what it describes. Raises ConfigError."""
        nodes = self._nodes()
        model = ClusterModel(
            name=self._name(),
            nodes=nodes,
            partitions=self._all("partitions", tables.PartitionTable, lambda table: table.partition(nodes))
            or (Partition(_ONLY, tuple(node.name for node in nodes), default=True),),
            qos=self._all("qos", tables.QosTable, tables.QosTable.qos),
            associations=self._all("associations", tables.AssociationTable, tables.AssociationTable.association),
            reservations=self._all("reservations", tables.ReservationTable, lambda table: table.reservation(nodes)),
            outages=self._all("outages", tables.OutageTable, tables.OutageTable.outage),
            settings=self._settings(),
            failures=self._failures(),
        )
        return DescribedCluster(model, str(self._path), self._places)

    def _name(self) -> str:
        name = self._data.get("name", self._path.stem)
        if not isinstance(name, str):
            raise ConfigError(f"{self._path}: name: expected a text")
        return name

    def _place(self, kind: Kind, index: int) -> str:
        line = self._lines.get((kind, index))
        return f"{self._path}{f' line {line}' if line else ''}"

    def _nodes(self) -> tuple[Node, ...]:
        found: list[Node] = []
        for index, table in enumerate(self._tables("nodes")):
            place = self._place("nodes", index)
            with located(place):
                several = _table(tables.NodesTable, table, place).nodes()
            self._places |= dict.fromkeys((("nodes", len(found) + offset) for offset in range(len(several))), place)
            found += several
            if len(found) > MAX_NODES:
                raise ConfigError(f"{place}: more than {MAX_NODES} nodes")
        return tuple(found)

    def _all(self, kind: Kind, of: Any, read: Callable[[Any], _T]) -> tuple[_T, ...]:
        found = []
        for index, table in enumerate(self._tables(kind)):
            place = self._places[kind, index] = self._place(kind, index)
            with located(place):
                found.append(read(_table(of, table, place)))
        return tuple(found)

    def _tables(self, kind: Kind) -> list[Any]:
        listed = self._data.get(kind, [])
        if not isinstance(listed, list):
            raise ConfigError(f"{self._place(kind, 0)}: {kind}: expected tables: write [[{kind}]]")
        return listed

    def _settings(self) -> dict[str, str]:
        place = self._place("settings", 0)
        found = self._data.get("settings", {})
        if not isinstance(found, dict):
            raise ConfigError(f"{place}: settings: expected a table")
        with located(place):
            return tables.settings_of(found)

    def _failures(self) -> Failures | None:
        place = self._places["failures", 0] = self._place("failures", 0)
        if "failures" not in self._data:
            return None
        found = _table(tables.FailuresTable, self._data["failures"], place)
        return Failures(found.mtbf_h, found.repair_h)


def _table(kind: Any, data: Any, place: str) -> Any:
    return read_table(kind, data, f"{place}:", READERS)


def _lines(text: str) -> dict[Place, int]:
    """Return the line of each table's header; text within many-line strings may shift them, never the values."""
    counts: dict[str, int] = {}
    found: dict[Place, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        match = _HEADER.match(line)
        if match and match[1] in _KEYS:
            kind: Any = match[1]
            found[kind, counts.get(kind, 0)] = number
            counts[kind] = counts.get(kind, 0) + 1
    return found
