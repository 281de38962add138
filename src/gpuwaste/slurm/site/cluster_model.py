"""A cluster in Slurm's terms: nodes, partitions, QOS, associations, reservations, settings of slurmctld.

Every reader of a site (scontrol, sacctmgr, slurm.conf, a TOML) returns these types, the only ones in gpuwaste that
describe a cluster. Terms are Slurm's. Times are integer seconds, instants UTC seconds, memory bytes; None means "no
limit" or "not set".
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from gpuwaste.slurm.site.node_states import is_usable

_ABSENT: Final = frozenset({"(null)", "N/A", "none", "None"})
UP: Final = "UP"
DOWN: Final = "DOWN"
NEVER: Final = 1 << 40  # the end of an outage that continues
PreemptMode = Literal["off", "cancel", "requeue"]
Tres = Mapping[str, int]
"""TRES by name (`cpu`, `mem` in bytes, `node`, `billing`, `gres/gpu`, `gres/gpu:TYPE`) and their amounts."""


@dataclass(frozen=True, slots=True)
class SlurmConfig:
    """The needed values of slurm.conf as slurmctld runs it; `settings` holds all of it as printed."""

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
    def linear(self) -> bool:
        """Whether every job gets whole nodes (select/linear)."""
        return self.settings.get("SelectType", "") == "select/linear"

    @property
    def private_data(self) -> frozenset[str]:
        """Words of PrivateData, empty for none."""
        value = self.settings.get("PrivateData", "")
        return frozenset(word for word in value.split(",") if word and word not in _ABSENT)

    def spool_dir(self, node: str, hostname: str) -> str:
        """Return SlurmdSpoolDir of a node, with %n and %h replaced."""
        values = {"%n": node, "%h": hostname, "%%": "%"}
        text = self.settings.get("SlurmdSpoolDir", "")
        return re.sub(r"%[nh%]", lambda match: values[match[0]], text)


@dataclass(frozen=True, slots=True)
class Node:
    """One node; CPUs and memory are those that jobs can have, `gpus` counts GPUs by type ("" where none is named).

    `state` is as printed, "" where nothing keeps jobs away (node_states.py). Host name, address, slurmd's version and
    the partitions are known only for a live node.
    """

    name: str
    cpus: int = 0
    memory_b: int = 0
    gpus: Mapping[str, int] = field(default_factory=dict)
    features: frozenset[str] = frozenset()
    weight: int = 1
    state: str = ""
    hostname: str = ""
    address: str = ""
    version: str = ""
    partitions: tuple[str, ...] = ()

    @property
    def gpu_count(self) -> int:
        """GPUs of every type, MIG instances included."""
        return sum(self.gpus.values())

    @property
    def down(self) -> bool:
        """Whether its state keeps slurmctld from starting jobs on it."""
        return not is_usable(self.state)

    def scheduled(self) -> "Node":
        """Return the node as a scheduler sees it: of the state only whether it takes jobs, no host."""
        state = DOWN if self.down else ""
        return Node(self.name, self.cpus, self.memory_b, self.gpus, self.features, self.weight, state)


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition; empty sets of names allow everybody. `whole_nodes`: a job there holds its nodes exclusively.

    `billing_weights` are TRESBillingWeights as tres_amounts.py reads them, None where they cannot be read.
    """

    name: str
    nodes: tuple[str, ...] = ()
    default: bool = False
    state: str = UP
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
    billing_weights: Mapping[str, float] | None = field(default_factory=dict)
    allow_groups: frozenset[str] = frozenset()

    @property
    def up(self) -> bool:
        """Whether slurmctld starts jobs there."""
        return self.state == UP


@dataclass(frozen=True, slots=True)
class LimitSet:
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
class UserShare:
    """How much of a QOS one user may have at a time, and their current usage."""

    limits: LimitSet = LimitSet()
    tres: Tres = field(default_factory=dict)
    submit_jobs: int = 0


@dataclass(frozen=True, slots=True)
class LimitUsage:
    """Current usage of the group limits of an association or a QOS, and of each user of a QOS, by uid."""

    tres: Tres = field(default_factory=dict)
    submit_jobs: int = 0
    users: Mapping[int, UserShare] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Qos:
    """One QOS; `preempts` are the names of those that its jobs may preempt."""

    name: str
    priority: int = 0
    limits: LimitSet = LimitSet()
    preempts: frozenset[str] = frozenset()
    preempt_mode: PreemptMode | None = None
    usage_factor: float = 1.0
    flags: frozenset[str] = frozenset()
    used: LimitUsage = LimitUsage()


@dataclass(frozen=True, slots=True)
class Association:
    """An account (`user` is ""), or a user in an account.

    `parent` is the account above (a user's: `account`), "" for root itself.
    `shares` None means `parent`: the user shares the account's shares. `usage` is the decayed usage in slurmctld at
    the beginning, in seconds of billing TRES. `default`: the user's account where they name none. `fair_share` is the
    factor of a user, 0 to 1, where it was requested, as is `used`.
    """

    account: str
    user: str = ""
    parent: str = "root"
    partition: str = ""
    shares: int | None = 1
    limits: LimitSet = LimitSet()
    default_qos: str = ""
    qos: frozenset[str] = frozenset()
    priority: int = 0
    usage: float = 0.0
    default: bool = False
    fair_share: float | None = None
    used: LimitUsage = LimitUsage()


@dataclass(frozen=True, slots=True)
class Reservation:
    """Nodes reserved from start until end; `users` and `accounts` may use them, nobody where both are empty."""

    name: str
    nodes: tuple[str, ...]
    start: int
    end: int
    users: frozenset[str] = frozenset()
    accounts: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Outage:
    """A node that is down from start until end (NEVER: still down); its jobs end when it fails."""

    node: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Failures:
    """How often a node fails and how long it is down: means of exponential distributions, in hours of one node."""

    mtbf_h: float
    repair_h: float = 24.0


@dataclass(frozen=True, slots=True)
class ClusterModel:
    """The complete cluster. `settings` are slurm.conf's, by their names there, as printed by `scontrol show config`.

    `failures` are drawn for the time of a trace (sim/drawn_outages.py) and are then among the outages.
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
