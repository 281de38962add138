"""A cluster as a scheduler sees it: nodes, partitions, QOS, associations, reservations, settings of slurmctld.

What reads one (a live Slurm, slurm.conf, a TOML file) lies in `clusters/`, one file each; what plays on one takes this
and nothing else. Words are Slurm's. Times are whole seconds, instants UTC seconds, memory bytes; None stands for "no
limit" or "not said".
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

NEVER: Final = 1 << 40  # the end of an outage that goes on
PreemptMode = Literal["off", "cancel", "requeue"]
Tres = Mapping[str, int]
"""TRES by name (`cpu`, `mem` in bytes, `node`, `billing`, `gres/gpu`, `gres/gpu:TYPE`) and how much of it."""


@dataclass(frozen=True, slots=True)
class Node:
    """One node; `gpus` counts GPUs by type ("" where the site names none)."""

    name: str
    cpus: int
    memory_b: int
    gpus: Mapping[str, int] = field(default_factory=dict)
    features: frozenset[str] = frozenset()
    weight: int = 1
    down: bool = False

    @property
    def gpu_count(self) -> int:
        """GPUs of every type."""
        return sum(self.gpus.values())


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition; `nodes` are names of the model's nodes, empty sets of names allow everybody."""

    name: str
    nodes: tuple[str, ...]
    default: bool = False
    up: bool = True
    max_time_s: int | None = None
    default_time_s: int | None = None
    min_nodes: int = 1
    max_nodes: int | None = None
    priority_tier: int = 1
    priority_job_factor: int = 1
    whole_nodes: bool = False
    preempt_mode: PreemptMode | None = None
    qos: str = ""
    allow_accounts: frozenset[str] = frozenset()
    deny_accounts: frozenset[str] = frozenset()
    allow_qos: frozenset[str] = frozenset()
    deny_qos: frozenset[str] = frozenset()
    billing_weights: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits that a QOS or an association sets; see sacctmgr(1) for each."""

    grp_tres: Tres = field(default_factory=dict)
    grp_jobs: int | None = None
    grp_submit_jobs: int | None = None
    grp_wall_s: int | None = None
    max_tres_per_job: Tres = field(default_factory=dict)
    max_tres_per_node: Tres = field(default_factory=dict)
    max_tres_per_user: Tres = field(default_factory=dict)
    max_jobs_per_user: int | None = None
    max_submit_per_user: int | None = None
    max_wall_s: int | None = None


@dataclass(frozen=True, slots=True)
class Qos:
    """One QOS; `preempts` are the names of those that its jobs may preempt."""

    name: str
    priority: int = 0
    limits: Limits = Limits()
    preempts: frozenset[str] = frozenset()
    preempt_mode: PreemptMode | None = None
    usage_factor: float = 1.0
    flags: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Association:
    """An account (`user` is ""), or a user in an account.

    `parent` is the account above (a user's: `account`), "" for root itself.
    `shares` None stands for `parent`: the user shares what the account has. `usage` is the decayed usage that slurmctld
    knows at the beginning, in seconds of billing TRES.
    """

    account: str
    user: str = ""
    parent: str = "root"
    partition: str = ""
    shares: int | None = 1
    limits: Limits = Limits()
    default_qos: str = ""
    qos: frozenset[str] = frozenset()
    priority: int = 0
    usage: float = 0.0


@dataclass(frozen=True, slots=True)
class Reservation:
    """Nodes that are kept from start until end; `users` and `accounts` may use them, nobody where both are empty."""

    name: str
    nodes: tuple[str, ...]
    start: int
    end: int
    users: frozenset[str] = frozenset()
    accounts: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Outage:
    """A node that is down from start until end, NEVER where that goes on; its jobs end with it."""

    node: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Failures:
    """How often a node fails and how long it is down then: means of exponential distributions, in hours of one node."""

    mtbf_h: float
    repair_h: float


@dataclass(frozen=True, slots=True)
class ClusterModel:
    """The whole of it. `settings` are slurm.conf's, by their names there, as printed by `scontrol show config`.

    `failures` are drawn for the time of a trace (clusters/drawn.py) and then stand among the outages.
    """

    name: str
    nodes: tuple[Node, ...]
    partitions: tuple[Partition, ...]
    qos: tuple[Qos, ...] = ()
    associations: tuple[Association, ...] = ()
    reservations: tuple[Reservation, ...] = ()
    outages: tuple[Outage, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    failures: Failures | None = None

    @property
    def cpus(self) -> int:
        """CPUs of all nodes."""
        return sum(node.cpus for node in self.nodes)

    @property
    def gpus(self) -> int:
        """GPUs of all nodes."""
        return sum(node.gpu_count for node in self.nodes)

    def size(self, *, gpus: bool) -> int:
        """Return the CPUs, or the GPUs, of the nodes that are not down."""
        return sum(node.gpu_count if gpus else node.cpus for node in self.nodes if not node.down)

    def default_partition(self) -> Partition:
        """Return the partition of jobs that name none: the default one, else the first."""
        return next((each for each in self.partitions if each.default), self.partitions[0])
