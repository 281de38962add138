"""The tables of the machine's TOML: their keys with defaults, and the part of the model that each one stands for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, cast

from gpuwaste.core.errors import ParseError
from gpuwaste.core.text import words_of
from gpuwaste.sim.cluster import Association, Limits, Node, Outage, Partition, PreemptMode, Qos, Reservation
from gpuwaste.sim.clusters import settings
from gpuwaste.sim.clusters.table_values import (
    Bytes,
    Count,
    Duration,
    Gpus,
    Hosts,
    Instant,
    Mode,
    Name,
    Shares,
    Tres,
    Weights,
)

ALL: Final = ("ALL",)
_ROOT: Final = "root"
_NONE: Final = Hosts(())
_EVERY: Final = Hosts(ALL)
_BEGINNING: Final = Instant(0)
_ONE_SHARE: Final = Shares(1)
_NO_MEMORY: Final = Bytes(0)


@dataclass(frozen=True, slots=True)
class NodesTable:
    """`[[nodes]]`: nodes that are alike."""

    names: Hosts = _NONE
    cpus: int = 0
    memory: Bytes = _NO_MEMORY
    gpus: Gpus = field(default_factory=lambda: Gpus({}))
    features: tuple[str, ...] = ()
    weight: int = 1
    down: bool = False

    def nodes(self) -> tuple[Node, ...]:
        """Return them."""
        if not self.names:
            raise ParseError('nodes without names: write names = "gpu[01-16]"')
        one = Node("", self.cpus, self.memory, self.gpus, frozenset(self.features), self.weight, self.down)
        return tuple(replace(one, name=name) for name in self.names)


@dataclass(frozen=True, slots=True)
class PartitionTable:
    """`[[partitions]]`; ALL are all nodes."""

    name: str = ""
    nodes: Hosts = _EVERY
    default: bool = False
    up: bool = True
    max_time: Duration | None = None
    default_time: Duration | None = None
    min_nodes: int = 1
    max_nodes: Count | None = None
    priority_tier: int = 1
    priority_job_factor: int = 1
    whole_nodes: bool = False
    preempt_mode: Mode | None = None
    qos: str = ""
    allow_accounts: tuple[str, ...] = ()
    deny_accounts: tuple[str, ...] = ()
    allow_qos: tuple[str, ...] = ()
    deny_qos: tuple[str, ...] = ()
    billing_weights: Weights = field(default_factory=lambda: Weights({}))

    def partition(self, nodes: Sequence[Node]) -> Partition:
        """Return it on a machine of these nodes."""
        return Partition(
            name=self.name,
            nodes=_chosen(self.nodes, nodes),
            default=self.default,
            up=self.up,
            max_time_s=self.max_time,
            default_time_s=self.default_time,
            min_nodes=self.min_nodes,
            max_nodes=self.max_nodes,
            priority_tier=self.priority_tier,
            priority_job_factor=self.priority_job_factor,
            whole_nodes=self.whole_nodes,
            preempt_mode=cast("PreemptMode | None", self.preempt_mode),
            qos=self.qos,
            allow_accounts=frozenset(self.allow_accounts),
            deny_accounts=frozenset(self.deny_accounts),
            allow_qos=frozenset(self.allow_qos),
            deny_qos=frozenset(self.deny_qos),
            billing_weights=self.billing_weights,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _LimitsTable:
    grp_tres: Tres = field(default_factory=lambda: Tres({}))
    grp_jobs: Count | None = None
    grp_submit_jobs: Count | None = None
    grp_wall: Duration | None = None
    max_tres_per_job: Tres = field(default_factory=lambda: Tres({}))
    max_tres_per_node: Tres = field(default_factory=lambda: Tres({}))
    max_tres_per_user: Tres = field(default_factory=lambda: Tres({}))
    max_jobs_per_user: Count | None = None
    max_submit_per_user: Count | None = None
    max_wall: Duration | None = None

    def limits(self) -> Limits:
        """Return the limits."""
        return Limits(
            self.grp_tres,
            self.grp_jobs,
            self.grp_submit_jobs,
            self.grp_wall,
            self.max_tres_per_job,
            self.max_tres_per_node,
            self.max_tres_per_user,
            self.max_jobs_per_user,
            self.max_submit_per_user,
            self.max_wall,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class QosTable(_LimitsTable):
    """`[[qos]]`."""

    name: str = ""
    priority: int = 0
    preempts: tuple[str, ...] = ()
    preempt_mode: Mode | None = None
    usage_factor: float = 1.0
    flags: tuple[str, ...] = ()

    def qos(self) -> Qos:
        """Return it."""
        mode = cast("PreemptMode | None", self.preempt_mode)
        flags = frozenset(self.flags)
        return Qos(self.name, self.priority, self.limits(), frozenset(self.preempts), mode, self.usage_factor, flags)


@dataclass(frozen=True, slots=True, kw_only=True)
class AssociationTable(_LimitsTable):
    """`[[associations]]`: an account, or a user in one; `shares` may be "parent"."""

    account: str = ""
    user: str = ""
    parent: Name | None = None
    partition: str = ""
    shares: Shares | None = _ONE_SHARE
    default_qos: str = ""
    qos: tuple[str, ...] = ()
    priority: int = 0
    usage: float = 0.0

    def association(self) -> Association:
        """Return it."""
        return Association(
            account=self.account,
            user=self.user,
            parent=parent_of(self.account, self.user) if self.parent is None else self.parent,
            partition=self.partition,
            shares=self.shares,
            limits=self.limits(),
            default_qos=self.default_qos,
            qos=frozenset(self.qos),
            priority=self.priority,
            usage=self.usage,
        )


@dataclass(frozen=True, slots=True)
class ReservationTable:
    """`[[reservations]]`."""

    name: str = ""
    nodes: Hosts = _EVERY
    start: Instant = _BEGINNING
    end: Instant = _BEGINNING
    users: tuple[str, ...] = ()
    accounts: tuple[str, ...] = ()

    def reservation(self, nodes: Sequence[Node]) -> Reservation:
        """Return it on a machine of these nodes."""
        chosen = _chosen(self.nodes, nodes)
        return Reservation(self.name, chosen, self.start, self.end, frozenset(self.users), frozenset(self.accounts))


@dataclass(frozen=True, slots=True)
class OutageTable:
    """`[[outages]]`."""

    node: str = ""
    start: Instant = _BEGINNING
    end: Instant = _BEGINNING

    def outage(self) -> Outage:
        """Return it."""
        return Outage(self.node, self.start, self.end)


@dataclass(frozen=True, slots=True)
class FailuresTable:
    """`[failures]`: mean hours of a node between failures, and until it is repaired."""

    mtbf_h: float = 0.0
    repair_h: float = 24.0


def parent_of(account: str, user: str) -> str:
    """Return the account above where a table names none: a user's is the account, an account's is root."""
    return account if user else ("" if account == _ROOT else _ROOT)


def settings_of(table: Mapping[str, Any]) -> dict[str, str]:
    """Return `[settings]` by slurm.conf's spelling, values as scontrol prints them. Raises ParseError."""
    found = {}
    for name, value in table.items():
        if not isinstance(value, str | int | float):
            raise ParseError(f"settings {words_of(name, 60)}: expected a text or a number")
        text = ("Yes" if value else "No") if isinstance(value, bool) else str(value)
        known, shown = settings.printed(name, text)
        found[known] = shown
    return found


def _chosen(names: tuple[str, ...], nodes: Sequence[Node]) -> tuple[str, ...]:
    return tuple(node.name for node in nodes) if names == ALL else names
