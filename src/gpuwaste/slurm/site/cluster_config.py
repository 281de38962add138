"""`scontrol show config`, `show partition` and `show node -d`: how the site is set up."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from gpuwaste.core.errors import ParseError
from gpuwaste.core.units import parse_duration_s
from gpuwaste.slurm.formats.gres import GresEntry, parse_gres
from gpuwaste.slurm.formats.hostlist import expand

_SETTING = re.compile(r"^(\S+) *= ?(.*)$")
_FIELD = re.compile(r"(?:^|(?<=\s))([A-Za-z][\w/:]*)=(\S*)")
_ABSENT = frozenset({"(null)", "N/A", "none", "None"})
WHOLE_NODES: Final = frozenset({"NODE", "TOPO"})
"""Values of Exclusive= by which a job holds its nodes alone."""


@dataclass(frozen=True, slots=True)
class SlurmConfig:
    """What we need of slurm.conf as slurmctld runs it; `settings` holds all of it as printed."""

    settings: dict[str, str]

    @property
    def cluster_name(self) -> str:
        """ClusterName."""
        return self.settings.get("ClusterName", "")

    @property
    def version(self) -> str:
        """Slurm's version, as 22.05.8."""
        return self.settings.get("SLURM_VERSION", "")

    @property
    def select_type(self) -> str:
        """SelectType: select/linear gives whole nodes."""
        return self.settings.get("SelectType", "")

    @property
    def private_data(self) -> frozenset[str]:
        """Words of PrivateData, empty for none."""
        value = self.settings.get("PrivateData", "")
        return frozenset(word for word in value.split(",") if word and word not in _ABSENT)

    def spool_dir(self, node: str, hostname: str) -> str:
        """Return SlurmdSpoolDir of a node, with %n and %h put in."""
        values = {"%n": node, "%h": hostname, "%%": "%"}
        text = self.settings.get("SlurmdSpoolDir", "")
        return re.sub(r"%[nh%]", lambda match: values[match[0]], text)


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition; `whole_node`: a job there holds its nodes alone."""

    name: str
    nodes: tuple[str, ...] = ()
    whole_node: bool = False
    state: str = ""
    max_time_s: int | None = None
    default_time_s: int | None = None
    default: bool = False


def whole_node_partitions(partitions: Iterable[Partition], config: SlurmConfig) -> frozenset[str]:
    """Return the names of the partitions whose jobs get whole nodes: all of them with select/linear."""
    linear = config.select_type == "select/linear"
    return frozenset(partition.name for partition in partitions if linear or partition.whole_node)


@dataclass(frozen=True, slots=True)
class NodeInfo:
    """One node as slurmctld knows it; `gpus` counts its GPUs, MIG instances included."""

    name: str
    hostname: str = ""
    address: str = ""
    state: str = ""
    version: str = ""
    gres: tuple[GresEntry, ...] = ()
    partitions: tuple[str, ...] = field(default=())
    tres: str = ""  # CfgTRES as printed

    @property
    def gpus(self) -> int:
        """How many GPUs Slurm schedules on the node."""
        return sum(entry.number for entry in self.gres if entry.name == "gpu")


def parse_config(text: str) -> SlurmConfig:
    """Read `scontrol show config`. Raises ParseError where ClusterName is missing."""
    settings: dict[str, str] = {}
    for line in text.splitlines():
        match = _SETTING.match(line)
        if match:
            value = match[2].strip()
            settings.setdefault(match[1], "" if value == "(null)" else value)
    if not settings.get("ClusterName"):
        raise ParseError("scontrol show config: no ClusterName in its output")
    return SlurmConfig(settings)


def parse_partitions(text: str) -> list[Partition]:
    """Read `scontrol show partition`. Raises ParseError."""
    return [_partition(fields) for fields in records(text, "PartitionName")]


def parse_nodes(text: str) -> list[NodeInfo]:
    """Read `scontrol show node -d`. Raises ParseError."""
    return [_node(fields) for fields in records(text, "NodeName")]


def records(text: str, key: str) -> list[dict[str, str]]:
    """Return the fields of each record of `scontrol show`, which begins with `key`, by their names there."""
    starts = [match.start() for match in re.finditer(rf"^{key}=\S", text, re.MULTILINE)]
    found = []
    for start, stop in pairwise([*starts, len(text)]):
        fields: dict[str, str] = {}
        for name, value in _FIELD.findall(text[start:stop]):
            # The first wins: an administrator's Reason= and Comment= come last and may hold anything.
            fields.setdefault(name, "" if value == "(null)" else value)
        found.append(fields)
    return found


def _partition(fields: dict[str, str]) -> Partition:
    name = fields["PartitionName"]
    if "OverSubscribe" not in fields:
        raise ParseError(f"partition {name}: its record is cut off before OverSubscribe=")
    nodes = fields.get("Nodes", "")
    return Partition(
        name=name,
        nodes=tuple(expand(nodes)),
        whole_node=gives_whole_nodes(fields["OverSubscribe"], fields.get("Exclusive", "")),
        state=fields.get("State", ""),
        max_time_s=parse_duration_s(fields.get("MaxTime", "")),
        default_time_s=parse_duration_s(fields.get("DefaultTime", "")),
        default=fields.get("Default") == "YES",
    )


def _node(fields: dict[str, str]) -> NodeInfo:
    name = fields["NodeName"]
    if "Gres" not in fields:
        raise ParseError(f"node {name}: its record is cut off before Gres=")
    return NodeInfo(
        name=name,
        hostname=fields.get("NodeHostName", ""),
        address=fields.get("NodeAddr", ""),
        state=fields.get("State", ""),
        version=fields.get("Version", ""),
        gres=tuple(parse_gres(fields["Gres"])),
        partitions=tuple(part for part in fields.get("Partitions", "").split(",") if part),
        tres=fields.get("CfgTRES", ""),
    )


def gives_whole_nodes(sharing: str, exclusive: str) -> bool:
    """Tell by OverSubscribe= of a partition and Exclusive=, which Slurm has since 26.05, if jobs hold nodes alone."""
    return sharing.upper() == "EXCLUSIVE" or exclusive.upper() in WHOLE_NODES
