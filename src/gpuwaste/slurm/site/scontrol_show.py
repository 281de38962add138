"""`scontrol show config`, `show partition` and `show node -d`: how the site is set up."""

import re
from itertools import pairwise
from typing import Final

from gpuwaste.core.errors import ParseError
from gpuwaste.slurm.formats.hostlist import expand
from gpuwaste.slurm.site.cluster_model import Node, Partition, SlurmConfig
from gpuwaste.slurm.site.site_fields import node_of, partition_of

_SETTING: Final = re.compile(r"^(\S+) *= ?(.*)$")
_FIELD: Final = re.compile(r"(?:^|(?<=\s))([A-Za-z][\w/:]*)=(\S*)")
_OF_NODE: Final = ("gres", "realmemory", "state")
_OF_PARTITION: Final = ("oversubscribe",)


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


def parse_nodes(text: str) -> list[Node]:
    """Read `scontrol show node -d`. Raises ParseError."""
    return [_node(fields) for fields in records(text, "NodeName")]


def records(text: str, key: str) -> list[dict[str, str]]:
    """Return the fields of each record of `scontrol show`, which begins with `key`; their names in lower case."""
    starts = [match.start() for match in re.finditer(rf"^{key}=\S", text, re.MULTILINE)]
    found = []
    for start, stop in pairwise([*starts, len(text)]):
        found.append({name.lower(): value for name, value in fields_of(text[start:stop]).items()})
    return found


def fields_of(text: str) -> dict[str, str]:
    """Return the words of KEY=word, "" for (null).

    The first of a key wins: an administrator's Reason= and Comment= come last and may hold anything.
    """
    fields: dict[str, str] = {}
    for name, value in _FIELD.findall(text):
        fields.setdefault(name, "" if value == "(null)" else value)
    return fields


def _partition(fields: dict[str, str]) -> Partition:
    name = fields["partitionname"]
    _check(f"partition {name}", fields, _OF_PARTITION, "OverSubscribe=")
    try:
        return partition_of(fields, expand(fields.get("nodes", "")))
    except ParseError as error:
        raise ParseError(f"partition {name}: {error}") from error


def _node(fields: dict[str, str]) -> Node:
    name = fields["nodename"]
    _check(f"node {name}", fields, _OF_NODE, "Gres=, RealMemory= or State=")
    try:
        return node_of(name, fields)
    except ParseError as error:
        raise ParseError(f"node {name}: {error}") from error


def _check(what: str, fields: dict[str, str], needed: tuple[str, ...], named: str) -> None:
    if any(key not in fields for key in needed):
        raise ParseError(f"{what}: its record is cut off before {named}")
