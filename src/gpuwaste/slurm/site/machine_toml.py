"""The TOML of a machine: ten lines for a small one, or all of a live one as --write-machine writes it."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from gpuwaste.core.errors import ConfigError, ParseError
from gpuwaste.core.text import words_of
from gpuwaste.core.typed_toml import nearest, parse_toml, toml_value
from gpuwaste.slurm.formats.conf_file import read_bounded
from gpuwaste.slurm.site import machine_tables as tables
from gpuwaste.slurm.site import slurm_settings as settings
from gpuwaste.slurm.site.cluster_model import Association, ClusterModel, Failures, Node, Partition, Reservation
from gpuwaste.slurm.site.model_checks import MAX_NODES, DescribedModel, Kind, Place, located

TITLE: Final = "TOML with [[nodes]] (docs/how-to/simulate.md)"
_TABLE = re.compile(rb"^[ \t]*\[\[?[ \t]*\w+[ \t]*\]", re.MULTILINE)
_HEADER = re.compile(r"[ \t]*\[\[?[ \t]*(\w+)[ \t]*\]")
_LISTS: Final[tuple[Kind, ...]] = ("nodes", "partitions", "qos", "associations", "reservations", "outages")
_KEYS: Final = frozenset({"name", "settings", "failures", *_LISTS})
_ONLY: Final = "batch"  # the partition of a file that describes none
Pairs = Iterable[tuple[str, str]]


def reads(path: Path, head: bytes) -> bool:
    """Return whether it is TOML."""
    return not path.is_dir() and (path.suffix == ".toml" or (path.suffix != ".conf" and bool(_TABLE.search(head))))


def read(path: Path) -> DescribedModel:
    """Read it. Raises ConfigError, which names file, line and key."""
    raw = read_bounded(path)
    data = parse_toml(raw, str(path))
    for key in data:
        if key not in _KEYS:
            raise ConfigError(f"{path}: unknown key {key!r}{nearest(key, set(_KEYS))}")
    return _File(path, data, _lines(raw.decode())).described()


def to_toml(model: ClusterModel) -> str:
    """Return a model as text that is read back equal: defaults are left out, equal nodes are one table.

    The model must have been checked.
    """
    whole = tuple(node.name for node in model.nodes)
    found: list[tuple[str, Pairs]] = [("[[nodes]]", pairs) for pairs in _written_nodes(model.nodes)]
    found += [("[[partitions]]", tables.PARTITIONS.written(each, _places(each, whole))) for each in model.partitions]
    found += [("[[qos]]", tables.QOS.written(each, {})) for each in model.qos]
    found += [("[[associations]]", tables.ASSOCIATIONS.written(each, _above(each))) for each in model.associations]
    found += [
        ("[[reservations]]", tables.RESERVATIONS.written(each, _places(each, whole))) for each in model.reservations
    ]
    found += [("[[outages]]", tables.OUTAGES.written(each, {})) for each in model.outages]
    if model.failures is not None:
        found.append(("[failures]", tables.FAILURES.written(model.failures, {})))
    if model.settings:
        found.append(("[settings]", [(_key(name), toml_value(value)) for name, value in model.settings.items()]))
    lines = [f"name = {toml_value(model.name)}"]
    for header, pairs in found:
        lines += ["", header, *(f"{name} = {value}" for name, value in pairs)]
    return "\n".join(lines) + "\n"


class _File:
    """One file as parsed; `lines` has the line of each table."""

    def __init__(self, path: Path, data: Mapping[str, Any], lines: Mapping[Place, int]) -> None:
        self._path = path
        self._data = data
        self._lines = lines
        self._places: dict[Place, str] = {}

    def described(self) -> DescribedModel:
        """Return the described model. Raises ConfigError."""
        nodes = self._nodes()
        model = ClusterModel(
            name=self._name(),
            nodes=nodes,
            partitions=self._all("partitions", lambda data, place: _on_nodes(tables.PARTITIONS, data, place, nodes))
            or (Partition(_ONLY, tuple(node.name for node in nodes), default=True),),
            qos=self._all("qos", tables.QOS.read),
            associations=self._all("associations", _association),
            reservations=self._all(
                "reservations", lambda data, place: _on_nodes(tables.RESERVATIONS, data, place, nodes)
            ),
            outages=self._all("outages", tables.OUTAGES.read),
            settings=self._settings(),
            failures=self._failures(),
        )
        return DescribedModel(model, str(self._path), self._places)

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
                several = _nodes_of(table, f"{place}:")
            self._places |= dict.fromkeys((("nodes", len(found) + offset) for offset in range(len(several))), place)
            found += several
            if len(found) > MAX_NODES:
                raise ConfigError(f"{place}: more than {MAX_NODES} nodes")
        return tuple(found)

    def _all(self, kind: Kind, read: Callable[[Any, str], Any]) -> tuple[Any, ...]:
        found = []
        for index, table in enumerate(self._tables(kind)):
            place = self._places[kind, index] = self._place(kind, index)
            with located(place):
                found.append(read(table, f"{place}:"))
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
            return _settings_of(found)

    def _failures(self) -> Failures | None:
        place = self._places["failures", 0] = self._place("failures", 0)
        if "failures" not in self._data:
            return None
        found: Failures = tables.FAILURES.read(self._data["failures"], f"{place}:")
        return found


def _nodes_of(data: Any, where: str) -> list[Node]:
    found = tables.NODES.values(data, where)
    names = found.pop("name")
    if not names:
        raise ParseError('nodes without names: write names = "gpu[01-16]"')
    one = Node("", **found)
    return [replace(one, name=name) for name in names]


def _on_nodes(table: tables.TomlTable, data: Any, where: str, nodes: Sequence[Node]) -> Any:
    """Return a partition or a reservation; a table that names no nodes has all nodes."""
    found = table.read({"nodes": tables.ALL[0]} | data if isinstance(data, dict) else data, where)
    return replace(found, nodes=tuple(node.name for node in nodes)) if found.nodes == tables.ALL else found


def _association(data: Any, where: str) -> Association:
    if isinstance(data, dict):
        data = {"parent": tables.parent_of(data.get("account", ""), data.get("user", ""))} | data
    found: Association = tables.ASSOCIATIONS.read(data, where)
    return found


def _settings_of(table: Mapping[str, Any]) -> dict[str, str]:
    """Return `[settings]` by slurm.conf's spelling, values as scontrol prints them. Raises ParseError."""
    found = {}
    for name, value in table.items():
        if not isinstance(value, str | int | float):
            raise ParseError(f"settings {words_of(name, 60)}: expected a text or a number")
        text = ("Yes" if value else "No") if isinstance(value, bool) else str(value)
        known, shown = settings.printed(name, text)
        found[known] = shown
    return found


def _lines(text: str) -> dict[Place, int]:
    """Return the line of each table's header; text in multi-line strings may shift the lines, but not the values."""
    counts: dict[str, int] = {}
    found: dict[Place, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        match = _HEADER.match(line)
        if match and match[1] in _KEYS:
            kind: Any = match[1]
            found[kind, counts.get(kind, 0)] = number
            counts[kind] = counts.get(kind, 0) + 1
    return found


def _written_nodes(nodes: Iterable[Node]) -> Iterator[Pairs]:
    for one, group in groupby(nodes, lambda node: replace(node, name="")):
        yield tables.NODES.written(one, {"names": tables.hosts_text(node.name for node in group)})


def _places(part: Partition | Reservation, whole: tuple[str, ...]) -> dict[str, str | None]:
    return {"nodes": toml_value(tables.ALL[0]) if part.nodes == whole else tables.hosts_text(part.nodes)}


def _above(each: Association) -> dict[str, str | None]:
    usual = each.parent == tables.parent_of(each.account, each.user)
    return {"parent": None if usual else toml_value(each.parent)}


def _key(name: str) -> str:
    return name if name.isascii() and name.isidentifier() else toml_value(name)
