"""Nodes and partitions from their fields, which slurm.conf and `scontrol show` name alike; keys are in lower case."""

from collections.abc import Iterable, Mapping
from typing import Final

from gpuwaste.core.errors import ParseError
from gpuwaste.sim.cluster import Node, Partition, PreemptMode
from gpuwaste.sim.clusters import values
from gpuwaste.sim.clusters.values import Fields
from gpuwaste.slurm.cluster_config import gives_whole_nodes
from gpuwaste.slurm.gres import parse_gres
from gpuwaste.slurm.hostlist import natural_key
from gpuwaste.slurm.node_state import is_usable
from gpuwaste.slurm.tres_weights import parse_weights

_LINEAR: Final = "select/linear"


def node_of(name: str, fields: Fields) -> Node:
    """Return a node without what slurmd itself keeps (CoreSpecCount, MemSpecLimit). Raises ParseError."""
    memory = values.whole(fields.get("realmemory", "1"), "RealMemory")
    kept = values.whole(fields.get("memspeclimit", "0"), "MemSpecLimit")
    text = next(
        (fields[key] for key in ("activefeatures", "availablefeatures", "features", "feature") if key in fields), ""
    )
    return Node(
        name=name,
        cpus=_cpus(fields),
        memory_b=min(max(0, memory - kept) * values.MIB, values.MOST),
        gpus=gpus_of(fields.get("gres", "")),
        features=values.names(text),
        weight=values.whole(fields.get("weight", "1"), "Weight"),
        down=not is_usable(fields.get("state", "")),
    )


def gpus_of(gres: str) -> dict[str, int]:
    """Return GPUs by type of a Gres list; an entry without a count is one GPU. Raises ParseError."""
    found: dict[str, int] = {}
    for entry in parse_gres(gres):
        if entry.name == "gpu":
            found[entry.type] = found.get(entry.type, 0) + entry.number
    return {kind: count for kind, count in found.items() if count}


def partition_of(fields: Fields, nodes: Iterable[str], cluster: Mapping[str, str]) -> Partition:
    """Return a partition of these nodes; `cluster` are the settings, whose own values it does not repeat.

    Raises ParseError.
    """
    name = fields["partitionname"]
    most = values.limit(fields.get("maxnodes", ""), "MaxNodes")
    sharing = fields.get("oversubscribe", fields.get("shared", ""))
    priority = fields.get("priority", "1")  # of older files: both of the two that came after
    return Partition(
        name=name,
        nodes=tuple(nodes),
        default=fields.get("default", "").upper() == "YES",
        up=fields.get("state", "UP").upper() == "UP",
        max_time_s=values.seconds(fields.get("maxtime", "")),
        default_time_s=values.seconds(fields.get("defaulttime", fields.get("defaultime", ""))),
        min_nodes=max(1, values.whole(fields.get("minnodes", "1"), "MinNodes")),
        max_nodes=most,
        priority_tier=values.whole(fields.get("prioritytier", priority), "PriorityTier"),
        priority_job_factor=values.whole(fields.get("priorityjobfactor", priority), "PriorityJobFactor"),
        whole_nodes=gives_whole_nodes(sharing, fields.get("exclusive", "")) or cluster.get("SelectType") == _LINEAR,
        preempt_mode=_own_mode(fields.get("preemptmode", ""), cluster.get("PreemptMode", "")),
        qos="" if fields.get("qos", "").upper() in {"N/A", "(NULL)"} else fields.get("qos", ""),
        allow_accounts=values.names(fields.get("allowaccounts", "")),
        deny_accounts=values.names(fields.get("denyaccounts", "")),
        allow_qos=values.names(fields.get("allowqos", "")),
        deny_qos=values.names(fields.get("denyqos", "")),
        billing_weights=parse_weights(fields.get("tresbillingweights", "")),
    )


def sorted_nodes(nodes: Iterable[Node]) -> tuple[Node, ...]:
    """Return nodes as slurmctld keeps them, by name: of equal weights it takes the first."""
    return tuple(sorted(nodes, key=lambda node: natural_key(node.name)))


def _own_mode(text: str, cluster: str) -> PreemptMode | None:
    # scontrol prints the cluster's mode for a partition that has none of its own.
    mode = values.preempt_mode(text)
    return None if mode == (values.preempt_mode(cluster) or "off") else mode


def _cpus(fields: Fields) -> int:
    for key in ("cpuefctv", "cputot"):  # what scontrol prints
        if key in fields:
            return values.whole(fields[key], key)
    threads = values.whole(fields.get("threadspercore", "1"), "ThreadsPerCore")
    cores = values.whole(fields.get("corespersocket", "1"), "CoresPerSocket")
    boards = values.whole(fields.get("boards", "1"), "Boards")
    per_board = fields.get("socketsperboard", "")
    sockets = boards * values.whole(per_board, "SocketsPerBoard") if per_board else _sockets(fields)
    text = fields.get("cpus", fields.get("procs", ""))
    cpus = values.whole(text, "CPUs") if text else sockets * cores * threads
    kept = values.whole(fields.get("corespeccount", "0"), "CoreSpecCount") * threads
    if kept and kept >= cpus:
        raise ParseError(f"CoreSpecCount={kept // threads}: leaves no CPU of {cpus}")
    return cpus - kept


def _sockets(fields: Fields) -> int:
    return values.whole(fields.get("sockets", "1"), "Sockets")
