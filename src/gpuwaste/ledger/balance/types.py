"""The classes of the balance, what it is made of, and its sums. Times are UTC seconds, spans are [start, end)."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Literal, NamedTuple


class BalanceClass(StrEnum):
    """Where a GPU-second of the machine went; docs/explanation/balance.md has the rules."""

    ALLOCATED = "allocated"
    FREE = "free"
    FREE_CYCLE = "free_cycle"
    FREE_PLANNED = "free_planned"
    FREE_LIMIT = "free_limit"
    FREE_MEMORY = "free_memory"
    FREE_CPUS = "free_cpus"
    FREE_FEW_GPUS = "free_few_gpus"
    FREE_OTHER_TYPE = "free_other_type"
    FREE_UNKNOWN = "free_unknown"
    RESERVED = "reserved"
    MAINTENANCE = "maintenance"
    DRAINED = "drained"
    DOWN = "down"
    NOT_KNOWN = "not_known"


CLOSING: Final = (BalanceClass.DOWN, BalanceClass.DRAINED, BalanceClass.MAINTENANCE, BalanceClass.RESERVED)
"""Why a node takes no job of everybody's, the strongest reason first."""
STRANDED: Final = (BalanceClass.FREE_MEMORY, BalanceClass.FREE_CPUS)
"""Classes in which another run on the node is in the way."""
CYCLE_S: Final = 60
"""A job that has room and starts within so many seconds waits for the scheduler's next cycle."""
BY_DEMAND: Final = (
    BalanceClass.FREE_PLANNED,
    BalanceClass.FREE_MEMORY,
    BalanceClass.FREE_CPUS,
    BalanceClass.FREE_FEW_GPUS,
    BalanceClass.FREE_OTHER_TYPE,
)
"""Causes that jobs without a limit give: together at most as many GPUs as these jobs request, in this order."""
Devices = Literal["GPUs", "CPUs"]
"""What is counted: CPUs on a machine without GPUs."""
Run = tuple[int, int]
"""A run of the cluster: job id and start."""


class GpuKind(NamedTuple):
    """The GPUs that are counted together: names of their partitions and their type, each joined by commas."""

    partitions: str
    gpu_type: str


@dataclass(frozen=True, slots=True)
class NodeSpan:
    """A node with one configuration, from `since` until `until`; CPUs and memory are those that jobs can have."""

    node: str
    since: int
    until: int
    gpus: int
    cpus: int
    memory_b: int
    kind: GpuKind
    features: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Closure:
    """A node takes no job of everybody's, for one of the reasons in CLOSING."""

    node: str
    start: int
    end: int
    reason: BalanceClass


@dataclass(frozen=True, slots=True)
class Holding:
    """What a run holds on one node; `estimated`: an even share of what it holds in all."""

    run: Run
    node: str
    start: int
    end: int
    gpus: int
    cpus: int
    memory_b: int
    estimated: bool = False


@dataclass(frozen=True, slots=True)
class WaitingRun:
    """A run that waits for GPUs from `eligible` until `leave`; amounts are of the whole job, 0 for none requested.

    `started`: it started at `leave`. `limited`: a limit of its QOS, association or partition kept it
    back. `time_limit_s` None is endless.
    """

    run: Run
    eligible: int
    leave: int
    started: bool
    partitions: frozenset[str]
    nodes: int
    gpus: int
    cpus: int = 0
    memory_b: int = 0
    gpu_type: str = ""
    time_limit_s: int | None = None
    limited: bool = False
    constraint: str = ""


@dataclass(slots=True)
class BalanceInputs:
    """All that is known of the time [start, end). Before `states_from` states of nodes are not known."""

    start: int
    end: int
    nodes: Sequence[NodeSpan]
    closures: Sequence[Closure] = ()
    holdings: Sequence[Holding] = ()
    waiting: Sequence[WaitingRun] = ()
    states_from: int = 0


class HourSum(NamedTuple):
    """A place of the sums: the first second of a UTC hour, a kind of GPUs, a class."""

    hour: int
    kind: GpuKind
    of: BalanceClass


class Blocking(NamedTuple):
    """A run that kept GPUs of a node from jobs that waited, in an hour."""

    hour: int
    of: BalanceClass
    run: Run
    node: str
    kind: GpuKind


@dataclass(slots=True)
class BalanceSums:
    """GPU-seconds by hour, kind and class; `estimated` of the allocated ones; by run those that it stranded.

    `over` are GPU-seconds that runs held beyond what their node has: they are in no class.
    """

    seconds: dict[HourSum, int] = field(default_factory=dict)
    blocked: dict[Blocking, int] = field(default_factory=dict)
    estimated: dict[HourSum, int] = field(default_factory=dict)
    over: dict[HourSum, int] = field(default_factory=dict)
