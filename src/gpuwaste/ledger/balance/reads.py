"""The inputs of a balance from a store: the machine by time, what runs held, and who waited."""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, Final

from gpuwaste.core.errors import ParseError
from gpuwaste.jobs.machine.machine_reads import (
    held_runs,
    machine_known,
    machine_nodes,
    memory_of,
    names_of,
    outages,
    reservations,
)
from gpuwaste.jobs.machine.types import ALWAYS, POOL, MachineKnown
from gpuwaste.ledger.balance.types import (
    BalanceClass,
    BalanceInputs,
    Closure,
    Devices,
    GpuKind,
    Holding,
    NodeSpan,
    WaitingRun,
)
from gpuwaste.slurm.accounting.tres_amounts import count_of_tres, gpu_count, tres_or_none
from gpuwaste.store.database import Database

FAR: Final = 1 << 40
_LIMIT: Final = re.compile(r"QOS|Assoc|Partition\w{0,40}Limit|Max\w{1,40}Per", re.ASCII)
_DRAIN: Final = re.compile(r"DRAIN|DRNG|%|@", re.IGNORECASE)
_DOWN: Final = re.compile(r"DOWN|FAIL|ERROR|NOT_RESP|\*", re.IGNORECASE)
_MOST_PARTITIONS: Final = 64


def devices_of(db: Database, cluster: str) -> Devices:
    """Return what is counted of a cluster: CPUs where no node that is known has a GPU. Raises StoreError."""
    nodes = machine_nodes(db, cluster, 0, FAR)
    return "CPUs" if nodes and not any(node.gpus for node in nodes) else "GPUs"


def inputs_of(db: Database, cluster: str, start: int, end: int, devices: Devices = "GPUs") -> BalanceInputs:
    """Return all that the store has of a cluster's GPUs (or CPUs) in [start, end), UTC seconds. Raises StoreError."""
    cpus = devices == "CPUs"
    spans = spans_of(db, cluster, start, end, devices)
    with_gpus = {span.node for span in spans}
    pooled = with_gpus == {POOL}
    return BalanceInputs(
        start,
        end,
        spans,
        [closure for closure in _closures(db, cluster, start, end) if closure.node in with_gpus],
        list(_holdings(db, cluster, (start, end), with_gpus, cpus=cpus)),
        list(_waiting(db, cluster, (start, end), cpus=cpus, pooled=pooled)),
        states_from(machine_known(db, cluster)),
    )


def spans_of(db: Database, cluster: str, start: int, end: int, devices: Devices) -> list[NodeSpan]:
    """Return the nodes that have what is counted, by time. Raises StoreError."""
    cpus = devices == "CPUs"
    return [
        NodeSpan(
            node.node,
            node.since,
            FAR if node.until is None else node.until,
            node.cpus if cpus else node.gpus,
            0 if cpus else node.cpus,
            node.memory_b,
            GpuKind(node.partitions, node.gpu_type),
            frozenset(filter(None, node.features.split(","))),
        )
        for node in machine_nodes(db, cluster, start, end, assume_first=True)
        if cpus or node.gpus
    ]


def states_from(known: MachineKnown) -> int:
    """Return from when on states of nodes are known: by slurmdbd's events, or since the hub has read states itself."""
    if known.events is not None:
        return known.events
    return FAR if known.nodes in {None, ALWAYS} or known.inferred else known.nodes or FAR


def _closures(db: Database, cluster: str, start: int, end: int) -> Iterator[Closure]:
    for outage in outages(db, cluster, start, end):
        drained = _DRAIN.search(outage.state) is not None and _DOWN.search(outage.state) is None
        reason = BalanceClass.DRAINED if drained else BalanceClass.DOWN
        yield Closure(outage.node, outage.start, FAR if outage.end is None else outage.end, reason)
    for reserved in reservations(db, cluster, start, end):
        maintenance = "MAINT" in reserved.flags.upper().split(",")
        reason = BalanceClass.MAINTENANCE if maintenance else BalanceClass.RESERVED
        for node in names_of(reserved.nodes):
            yield Closure(node, reserved.start, reserved.end, reason)


def _holdings(
    db: Database, cluster: str, window: tuple[int, int], with_gpus: set[str], *, cpus: bool
) -> Iterator[Holding]:
    for run in held_runs(db, cluster, *window):
        key = run.job_id, run.run_start
        until = FAR if run.end is None else run.end
        for node, gpus, held_cpus, memory_b in run.amounts:
            if node in with_gpus:
                amounts = (held_cpus, 0, memory_b) if cpus else (gpus, held_cpus, memory_b)
                yield Holding(key, node, run.start, until, *amounts, not run.exact)


def _waiting(db: Database, cluster: str, window: tuple[int, int], *, cpus: bool, pooled: bool) -> Iterator[WaitingRun]:
    which = {"cluster": cluster, "since": window[0], "until": window[1], "cpus": cpus}
    for row in db.rows("balance_waiting", which):
        began = row["start"] is not None
        gpus, needed_cpus, memory_b, nodes = _held(row) if began else _requested(row["req_tres"])
        if cpus:
            gpus, needed_cpus = needed_cpus or row["cpus"] or 0, 0
        if not gpus:
            continue
        leave = row["start"] if began else row["end"]
        yield WaitingRun(
            (row["job_id"], row["run_start"]),
            row["eligible"],
            FAR if leave is None else leave,
            began,
            _partitions(row["partition"]),
            1 if pooled else nodes,
            gpus,
            needed_cpus,
            memory_b,
            _requested_type(row["req_tres"]),
            row["time_limit_s"],
            _LIMIT.match(row["reason"] or "") is not None,
            row["constraints"] or "",
        )


def _held(row: dict[str, Any]) -> tuple[int, int, int, int]:
    return row["gpus"] or 0, row["cpus"] or 0, memory_of(row["alloc_tres"]), row["n_nodes"] or 1


@lru_cache(maxsize=8192)
def _requested(req_tres: str) -> tuple[int, int, int, int]:
    """Return GPUs, CPUs, bytes and nodes of a request."""
    tres = tres_or_none(req_tres)
    try:
        gpus = gpu_count(tres).total
    except ParseError:
        return 0, 0, 0, 1
    return gpus, count_of_tres(tres, "cpu") or 0, memory_of(req_tres), count_of_tres(tres, "node") or 1


@lru_cache(maxsize=8192)
def _requested_type(req_tres: str) -> str:
    """Return the one type that a job requests, "" for any or for several."""
    try:
        kinds: Sequence[str] = list(gpu_count(tres_or_none(req_tres)).by_type)
    except ParseError:
        return ""
    return kinds[0] if len(kinds) == 1 else ""


@lru_cache(maxsize=8192)
def _partitions(text: str) -> frozenset[str]:
    return frozenset(text.split(",", _MOST_PARTITIONS)[:_MOST_PARTITIONS])
