"""slurm.conf with the gres.conf next to it: nodes, partitions and settings; a directory means its slurm.conf.

QOS, associations and reservations are not in slurm.conf: slurmctld and slurmdbd keep them (live_site.py).
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from gpuwaste.core.errors import ConfigError, ParseError
from gpuwaste.slurm.accounting.tres_amounts import parse_weights
from gpuwaste.slurm.formats.conf_file import ConfLine, read_conf
from gpuwaste.slurm.formats.hostlist import expand
from gpuwaste.slurm.site import site_fields as hardware
from gpuwaste.slurm.site import slurm_settings as settings
from gpuwaste.slurm.site import slurm_values as values
from gpuwaste.slurm.site.cluster_model import DOWN, ClusterModel, Node, Partition, SlurmConfig
from gpuwaste.slurm.site.model_checks import MAX_NAMES, MAX_NODES, DescribedModel, Place, located

TITLE: Final = "slurm.conf, or the directory with slurm.conf and gres.conf"
_KEYS = re.compile(
    rb"^[ \t]*(?:ClusterName|SlurmctldHost|ControlMachine|NodeName|PartitionName)[ \t]*=", re.IGNORECASE | re.MULTILINE
)
_DEFAULT: Final = "DEFAULT"
_FUTURE: Final = "FUTURE"


def reads(path: Path, head: bytes) -> bool:
    """Return whether it is a directory or has slurm.conf's lines."""
    return path.is_dir() or path.suffix == ".conf" or (path.suffix != ".toml" and bool(_KEYS.search(head)))


def read(path: Path) -> DescribedModel:
    """Read it. Raises ConfigError, which names file and line."""
    path = path / "slurm.conf" if path.is_dir() else path
    site = _Site()
    for line in read_conf(path):
        with located(line.place):
            _KINDS.get(line.pairs[0][0], _Site.setting)(site, line)
    gres = path.with_name("gres.conf")
    if gres.exists():
        for line in read_conf(gres):
            with located(line.place):
                site.gres_line(line)
    return site.described(path)


@dataclass(slots=True)
class _Site:
    """What has been read so far; `defaults` are those of the DEFAULT lines above."""

    settings: dict[str, str] = field(default_factory=dict)
    name: str = ""
    node_defaults: dict[str, str] = field(default_factory=dict)
    partition_defaults: dict[str, str] = field(default_factory=dict)
    nodes: list[tuple[ConfLine, Node]] = field(default_factory=list)
    future: set[str] = field(default_factory=set)
    states: dict[str, str] = field(default_factory=dict)
    partitions: list[tuple[ConfLine, dict[str, str]]] = field(default_factory=list)
    sets: dict[str, dict[str, str]] = field(default_factory=dict)
    gpu_types: dict[str, dict[str, int]] = field(default_factory=dict)
    expanded: int = 0

    def expand(self, text: str) -> list[str]:
        """Expand a hostlist; all of them together are bounded. Raises ParseError."""
        found = expand(text)
        self.expanded += len(found)
        if self.expanded > MAX_NAMES:
            raise ParseError(f"more than {MAX_NAMES} names of nodes in all")
        return found

    def setting(self, line: ConfLine) -> None:
        for key, value in line.pairs:
            if key == "clustername":
                self.name = value
            else:
                name, shown = settings.printed(key, value)
                self.settings[name] = shown

    def node_line(self, line: ConfLine) -> None:
        fields = line.fields
        if fields["nodename"].upper() == _DEFAULT:
            self.node_defaults |= fields
            return
        fields = self.node_defaults | fields
        names = self.expand(fields["nodename"])
        if fields.get("state", "").upper().startswith(_FUTURE):
            self.future.update(names)
            return
        if len(self.nodes) + len(names) > MAX_NODES:
            raise ConfigError(f"{line.place}: more than {MAX_NODES} nodes")
        one = hardware.node_of("", fields)
        self.nodes += [(line, replace(one, name=name)) for name in names]

    def partition_line(self, line: ConfLine) -> None:
        fields = line.fields
        if fields["partitionname"].upper() == _DEFAULT:
            self.partition_defaults |= fields
            return
        self.partitions += [
            (line, self.partition_defaults | fields | {"partitionname": name})
            for name in fields["partitionname"].split(",")
            if name
        ]

    def set_line(self, line: ConfLine) -> None:
        self.sets[line.fields["nodeset"]] = line.fields

    def down_line(self, line: ConfLine) -> None:
        self.states |= dict.fromkeys(self.expand(line.fields["downnodes"]), line.fields.get("state", DOWN))

    def gres_line(self, line: ConfLine) -> None:
        fields = line.fields
        if fields.get("name", "").lower() != "gpu":
            return
        count = (
            values.whole(fields["count"], "Count") if "count" in fields else len(self.expand(fields.get("file", "")))
        )
        for name in self.expand(fields.get("nodename", "")) or [""]:
            types = self.gpu_types.setdefault(name, {})
            types[fields.get("type", "")] = types.get(fields.get("type", ""), 0) + count

    def described(self, path: Path) -> DescribedModel:
        decisive = settings.decisive(self.settings)
        config = SlurmConfig(decisive)
        nodes = hardware.sorted_nodes(self._whole(node) for _, node in self.nodes)
        lines = {node.name: line.place for line, node in self.nodes}
        features: dict[str, list[str]] = {}
        for node in nodes:
            for feature in node.features:
                features.setdefault(feature, []).append(node.name)
        order = {node.name: index for index, node in enumerate(nodes)}
        partitions = [self._partition(line, fields, config, order, features) for line, fields in self.partitions]
        defaults = [index for index, each in enumerate(partitions) if each.default]
        for index in defaults[:-1]:  # slurmctld takes the last
            partitions[index] = replace(partitions[index], default=False)
        places: dict[Place, str] = {("nodes", index): lines[node.name] for index, node in enumerate(nodes)}
        places |= {("partitions", index): line.place for index, (line, _) in enumerate(self.partitions)}
        model = ClusterModel(self.name, nodes, tuple(partitions), settings=decisive)
        return DescribedModel(model, str(path), places)

    def _whole(self, node: Node) -> Node:
        types = self.gpu_types.get(node.name, self.gpu_types.get("", {}))
        untyped = list(node.gpus) == [""] and sum(types.values()) == node.gpu_count
        state = self.states.get(node.name, node.state)
        return replace(node, gpus=dict(types) if untyped else node.gpus, state=state).scheduled()

    def _partition(
        self,
        line: ConfLine,
        fields: Mapping[str, str],
        config: SlurmConfig,
        order: Mapping[str, int],
        features: Mapping[str, list[str]],
    ) -> Partition:
        with located(line.place):
            names = self._names(fields.get("nodes", ""), order, features)
            # A name that no node has is kept, at the end: model_checks.py rejects it.
            chosen = sorted(dict.fromkeys(names), key=lambda name: order.get(name, len(order)))
            parse_weights(fields.get("tresbillingweights", ""))  # an error names the item
            return hardware.scheduled(hardware.partition_of(fields, ()), chosen, config)

    def _names(self, text: str, order: Iterable[str], features: Mapping[str, list[str]]) -> Iterable[str]:
        if text.upper() == "ALL":
            yield from order
            return
        for name in self.expand(text):
            nodeset = self.sets.get(name)
            if nodeset is None:
                if name not in self.future:
                    yield name
                continue
            yield from self.expand(nodeset.get("nodes", ""))
            for feature in nodeset.get("feature", "").split(","):
                found = features.get(feature, [])
                self.expanded += len(found)
                yield from found


_KINDS: Final[Mapping[str, Callable[[_Site, ConfLine], None]]] = {
    "nodename": _Site.node_line,
    "partitionname": _Site.partition_line,
    "nodeset": _Site.set_line,
    "downnodes": _Site.down_line,
}
