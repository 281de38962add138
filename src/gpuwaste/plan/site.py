"""What a user may submit to: partitions with rules and GPU types, accounts and QOS with limits and what is left."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from gpuwaste.core.errors import GpuwasteError
from gpuwaste.slurm.site.assoc_mgr import LimitSet, parse_assoc_mgr
from gpuwaste.slurm.site.cluster_config import (
    NodeInfo,
    Partition,
    SlurmConfig,
    parse_config,
    parse_nodes,
    parse_partitions,
)
from gpuwaste.slurm.site.node_state import is_usable
from gpuwaste.slurm.site.partition_rules import PartitionRules, parse_rules

_NOT_NOW: Final = ("MAINT", "RESERVED", "POWERED_DOWN", "POWERING_DOWN", "REBOOT")  # an idle node starts no job at once
_WIDTH: Final = 4  # columns that sacctmgr is asked for
_DEPTH: Final = 64  # accounts above each other; a cycle ends here too
_NO_CONFIG: Final = SlurmConfig({})
_ASSOCIATIONS: Final = "format=account,partition,qos,defaultqos"


class CommandRunner(Protocol):
    """Prints what one of Slurm's commands prints. Raises SlurmError."""

    def text(self, *argv: str) -> str:
        """Return the command's output."""
        ...


@dataclass(frozen=True, slots=True)
class Membership:
    """One account that the user may charge, in one partition or any (""), with the QOS that are open to them there."""

    account: str
    partition: str
    qos: frozenset[str]
    default_qos: str


@dataclass(frozen=True, slots=True)
class Site:
    """The facts; where one could not be asked its field is empty and `notes` says so.

    `qos_flags` are the flags of each QOS. `groups` are the user's on this host; None is "not known", and root's, whom
    Slurm lets into any partition.
    """

    partitions: Mapping[str, Partition] = field(default_factory=dict)
    rules: Mapping[str, PartitionRules] = field(default_factory=dict)
    nodes: tuple[NodeInfo, ...] = ()
    limits: tuple[LimitSet, ...] = ()
    qos_flags: Mapping[str, frozenset[str]] = field(default_factory=dict)
    memberships: tuple[Membership, ...] = ()
    config: SlurmConfig = _NO_CONFIG
    uid: int = -1
    groups: frozenset[str] | None = None
    notes: tuple[str, ...] = ()

    @property
    def enforced(self) -> frozenset[str]:
        """Words of AccountingStorageEnforce: limits and QOS hold only where they are in it."""
        words = self.config.settings.get("AccountingStorageEnforce", "").lower().replace(" ", "").split(",")
        return frozenset(words) | ({"limits", "associations"} if "safe" in words else set())

    def types(self, partition: str) -> dict[str, int]:
        """Return GPU type -> the most that one usable node of the partition has."""
        found: dict[str, int] = {}
        for node in self.nodes:
            if partition in node.partitions and is_usable(node.state):
                for entry in node.gres:
                    if entry.name == "gpu" and entry.type:
                        found[entry.type] = max(found.get(entry.type, 0), entry.number)
        return found

    def gpus(self, partition: str) -> int:
        """Return the most GPUs that one node of the partition has, of whatever type."""
        return max((node.gpus for node in self.nodes if partition in node.partitions), default=0)

    def has_idle(self, partition: str) -> bool:
        """Whether a node of the partition is idle and takes jobs."""
        states = (node.state.upper() for node in self.nodes if partition in node.partitions)
        return any(
            state.startswith("IDLE") and is_usable(state) and not any(word in state for word in _NOT_NOW)
            for state in states
        )

    def fair_share(self, account: str, user: str, partition: str) -> float | None:
        """Return the fair share of a user in an account, None where it is not known or orders nothing."""
        settings = self.config.settings
        if settings.get("PriorityType") != "priority/multifactor" or not _weighs(settings):
            return None
        nearest = next(iter(self.chain(account, user, partition)), None)
        return nearest.fair_share if nearest is not None and nearest.user else None

    def account(self, named: str, user: str) -> str:
        """Return the account that a job is charged to: the named one, else the user's default; "" if not known."""
        default = next((one.account for one in self.limits if one.user == user and one.default), "")
        return named or default or (self.memberships[0].account if len(self.memberships) == 1 else "")

    def membership(self, account: str, partition: str) -> Membership | None:
        """Return what the user has in the account, the partition's own before that of all partitions."""
        own = [one for one in self.memberships if one.account == account and one.partition in {"", partition}]
        return max(own, key=lambda one: one.partition, default=None)

    def qos_limits(self, name: str) -> LimitSet | None:
        """Return the limits of a QOS."""
        return next((one for one in self.limits if name and one.qos == name), None)

    def chain(self, account: str, user: str, partition: str) -> list[LimitSet]:
        """Return the user's association in the account and the accounts above it, the nearest first."""
        own = [one for one in self.limits if one.account == account and not one.qos]
        found = [one for one in own if one.user == user and one.partition in {"", partition}]
        found = sorted(found, key=lambda one: one.partition, reverse=True)[:1]
        above = {one.account: one for one in self.limits if not one.user and not one.qos}
        while account in above and len(found) < _DEPTH:
            found.append(above[account])
            account = above[account].parent
        return found


def read_site(shown: CommandRunner, user: str, uid: int, groups: frozenset[str] | None = None) -> Site:
    """Ask Slurm, one RPC for each kind of fact. Raises SlurmError and ParseError where the partitions are missing."""
    text = shown.text("scontrol", "--all", "show", "partition")
    notes: list[str] = []

    def tried(what: str, *argv: str) -> str:
        try:
            return shown.text(*argv)
        except GpuwasteError as error:
            notes.append(f"cannot read {what}: {error}")
            return ""

    nodes = tried("the nodes", "scontrol", "--all", "--details", "show", "node")
    config = tried("slurm.conf", "scontrol", "show", "config")
    limits = tried("the limits", "scontrol", "show", "assoc_mgr", "flags=assoc,qos")
    rows = tried(
        "your accounts", "sacctmgr", "--noheader", "--parsable2", "show", "assoc", f"user={user}", _ASSOCIATIONS
    )
    flags = tried("the flags of QOS", "sacctmgr", "--noheader", "--parsable2", "show", "qos", "format=name,flags")
    return Site(
        partitions={one.name: one for one in parse_partitions(text)},
        rules=parse_rules(text),
        nodes=tuple(parse_nodes(nodes)),
        limits=tuple(parse_assoc_mgr(limits)),
        qos_flags=dict(_flags(flags.splitlines())),
        memberships=tuple(_memberships(rows.splitlines())),
        config=parse_config(config) if config else _NO_CONFIG,
        uid=uid,
        groups=groups,
        notes=tuple(notes),
    )


def _weighs(settings: Mapping[str, str]) -> bool:
    return settings.get("PriorityWeightFairShare", "0").strip("0") != ""


def _flags(lines: Iterable[str]) -> Iterable[tuple[str, frozenset[str]]]:
    for line in lines:
        name, bar, flags = line.partition("|")
        if bar:
            yield name, frozenset(flags.split(","))


def _memberships(lines: Iterable[str]) -> Iterable[Membership]:
    for line in lines:
        row = line.split("|")
        if len(row) == _WIDTH:
            account, partition, qos, default = row
            yield Membership(account, partition, frozenset(filter(None, qos.split(","))), default)
