"""Nodes, partitions and settings by their fields in lower case, which slurm.conf and `scontrol show` name alike."""

import re
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from typing import Final

from gpuwaste.core.errors import ParseError
from gpuwaste.slurm.accounting.tres_amounts import weights_or_none
from gpuwaste.slurm.formats.gpu_positions import parse_gres
from gpuwaste.slurm.formats.hostlist import expand, natural_key
from gpuwaste.slurm.site import slurm_values as values
from gpuwaste.slurm.site.cluster_model import DOWN, UP, Node, Partition, PreemptMode, SlurmConfig
from gpuwaste.slurm.site.slurm_values import Fields

WHOLE_NODES: Final = frozenset({"NODE", "TOPO"})
"""Values of Exclusive= with which a job holds its nodes exclusively."""
_SETTING: Final = re.compile(r"^(\S+) *= ?(.*)$")
_FIELD: Final = re.compile(r"(?:^|(?<=\s))([A-Za-z][\w/:]*)=(\S*)")
_OF_NODE: Final = ("gres", "realmemory", "state")
_OF_PARTITION: Final = ("oversubscribe",)


def node_of(name: str, fields: Fields) -> Node:
    """Return a node without what slurmd reserves (CoreSpecCount, CpuSpecList, MemSpecLimit). Raises ParseError."""
    memory = values.whole(fields.get("realmemory", "1"), "RealMemory")
    kept = values.whole(fields.get("memspeclimit", "0"), "MemSpecLimit")
    text = next(
        (fields[key] for key in ("activefeatures", "availablefeatures", "features", "feature") if key in fields), ""
    )
    return Node(
        name=name,
        cpus=_cpus(fields),
        memory_b=min((memory - kept if kept < memory else memory) * values.MIB, values.MOST),
        gpus=gpus_of(fields.get("gres", "")),
        features=values.names(text),
        weight=values.whole(fields.get("weight", "1"), "Weight"),
        state=fields.get("state", ""),
        hostname=fields.get("nodehostname", ""),
        address=fields.get("nodeaddr", ""),
        version=fields.get("version", ""),
        partitions=tuple(part for part in fields.get("partitions", "").split(",") if part),
    )


def gpus_of(gres: str) -> dict[str, int]:
    """Return GPUs by type of a Gres list; an entry without a count is one GPU. Raises ParseError."""
    found: dict[str, int] = {}
    for entry in parse_gres(gres):
        if entry.name == "gpu":
            found[entry.type] = found.get(entry.type, 0) + entry.number
    return {kind: count for kind, count in found.items() if count}


def partition_of(fields: Fields, nodes: Iterable[str]) -> Partition:
    """Return a partition of these nodes. Raises ParseError."""
    longest_s = values.seconds(fields.get("maxtime", ""))
    usual_s = values.seconds(fields.get("defaulttime", fields.get("defaultime", "")))
    sharing = fields.get("oversubscribe", fields.get("shared", ""))
    priority = fields.get("priority", "1")  # of older files: sets both of the two keys that replaced it
    return Partition(
        name=fields["partitionname"],
        nodes=tuple(nodes),
        default=bool(values.truth(fields.get("default", ""))),
        state=fields.get("state", UP).upper(),
        max_time_s=longest_s,
        default_time_s=usual_s if usual_s is None or longest_s is None or usual_s <= longest_s else None,
        min_nodes=max(1, values.whole(fields.get("minnodes", "1"), "MinNodes")),
        max_nodes=values.limit(fields.get("maxnodes", ""), "MaxNodes"),
        priority_tier=values.whole(fields.get("prioritytier", priority), "PriorityTier"),
        priority_job_factor=values.whole(fields.get("priorityjobfactor", priority), "PriorityJobFactor"),
        whole_nodes=sharing.upper() == "EXCLUSIVE" or fields.get("exclusive", "").upper() in WHOLE_NODES,
        preempt_mode=values.preempt_mode(fields.get("preemptmode", "")),
        qos="" if fields.get("qos", "").upper() in {"N/A", "(NULL)"} else fields.get("qos", ""),
        allow_accounts=values.names(fields.get("allowaccounts", "")),
        deny_accounts=values.names(fields.get("denyaccounts", "")),
        allow_qos=values.names(fields.get("allowqos", "")),
        deny_qos=values.names(fields.get("denyqos", "")),
        billing_weights=weights_or_none(fields.get("tresbillingweights", "")),
        allow_groups=values.names(fields.get("allowgroups", "")),
    )


def scheduled(partition: Partition, nodes: Iterable[str], config: SlurmConfig) -> Partition:
    """Return a partition as a scheduler sees it: these nodes, up or down, no groups; cluster settings are not repeated.

    Raises ParseError for weights that could not be read.
    """
    if partition.billing_weights is None:
        raise ParseError(f"partition {partition.name}: cannot read its TRESBillingWeights")
    # scontrol prints the cluster's mode for a partition that has none of its own.
    common: PreemptMode = values.preempt_mode(config.settings.get("PreemptMode", "")) or "off"
    return replace(
        partition,
        nodes=tuple(nodes),
        state=UP if partition.up else DOWN,
        whole_nodes=partition.whole_nodes or config.linear,
        preempt_mode=None if partition.preempt_mode == common else partition.preempt_mode,
        allow_groups=frozenset(),
    )


def sorted_nodes(nodes: Iterable[Node]) -> tuple[Node, ...]:
    """Return nodes as slurmctld keeps them, by name: of equal weights it takes the first."""
    return tuple(sorted(nodes, key=lambda node: natural_key(node.name)))


def _cpus(fields: Fields) -> int:
    """Return the CPUs that jobs can have, counted as slurmctld does (node_conf.c, cpus_efctv). Raises ParseError."""
    for key in ("cpuefctv", "cputot"):  # what scontrol prints
        if key in fields:
            return values.whole(fields[key], key)
    threads = _one_or_more(fields, "threadspercore", "ThreadsPerCore")
    cores, cpus = _cores_and_cpus(fields, threads)
    per_core = 1 if cores >= cpus else threads  # a site may count cores as CPUs
    kept = _kept_cores(fields, cores, cpus, per_core)
    if kept * per_core >= cpus:
        raise ParseError(f"CoreSpecCount={kept}: leaves no CPU of {cpus}")
    return cpus - kept * per_core


def _cores_and_cpus(fields: Fields, threads: int) -> tuple[int, int]:
    """Return all cores and CPUs of a node; CPUs that match none of its counts are recounted, as slurmctld does."""
    of_socket = _one_or_more(fields, "corespersocket", "CoresPerSocket")
    boards = _one_or_more(fields, "boards", "Boards")
    text = fields.get("cpus", fields.get("procs", ""))
    given = max(1, values.whole(text, "CPUs")) if text else 0
    if "socketsperboard" in fields:
        sockets = boards * _one_or_more(fields, "socketsperboard", "SocketsPerBoard")
    elif "sockets" in fields:
        sockets = _one_or_more(fields, "sockets", "Sockets")
    elif given and given % (of_socket * threads) == 0:
        sockets = given // (of_socket * threads)
    else:
        sockets = boards
    cores = sockets * of_socket
    return cores, given if given in {sockets, cores, cores * threads} else cores * threads


def _kept_cores(fields: Fields, cores: int, cpus: int, per_core: int) -> int:
    """Return the cores that no job gets: those of CpuSpecList, else CoreSpecCount; impossible counts become 1."""
    named = _named_cpus(fields.get("cpuspeclist", ""))
    if named and max(named) < cpus:  # slurmctld ignores a list that goes beyond the CPUs
        return len({cpu // per_core for cpu in named})
    kept = values.whole(fields.get("corespeccount", "0"), "CoreSpecCount")
    return kept if kept < cores else 1


def _named_cpus(text: str) -> frozenset[int]:
    """Return the CPUs of a list like 0-3,8; none for any other text."""
    try:
        return frozenset(int(name) for name in expand(f"[{text}]" if text else ""))
    except (ParseError, ValueError):
        return frozenset()


def _one_or_more(fields: Fields, key: str, name: str) -> int:
    return max(1, values.whole(fields.get(key, "1"), name))  # slurmctld takes 0 for 1


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
    """Return the fields of each record of `scontrol show`, which begins with `key`; names in lower case."""
    starts = [match.start() for match in re.finditer(rf"^{key}=\S", text, re.MULTILINE)]
    found = []
    for start, stop in pairwise([*starts, len(text)]):
        found.append({name.lower(): value for name, value in fields_of(text[start:stop]).items()})
    return found


def fields_of(text: str) -> dict[str, str]:
    """Return the words of KEY=word, "" for (null).

    The first of a key wins: an administrator's Reason= and Comment= are last and may hold anything.
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
