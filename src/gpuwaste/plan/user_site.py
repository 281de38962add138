"""What Slurm shows a user before a submission: partitions, nodes, accounts, QOS, limits, and queued jobs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple, Protocol, TypeVar

from gpuwaste.core.errors import GpuwasteError, ParseError
from gpuwaste.core.units import parse_duration_s
from gpuwaste.slurm.formats.printed_run import task_count
from gpuwaste.slurm.site.associations import parse_assoc_mgr, parse_table
from gpuwaste.slurm.site.cluster_model import Association, Node, Partition, Qos, SlurmConfig
from gpuwaste.slurm.site.site_fields import parse_config, parse_nodes, parse_partitions
from gpuwaste.slurm.site.slurm_settings import enforced
from gpuwaste.slurm.site.slurm_values import names

_NOT_NOW: Final = ("MAINT", "RESERVED", "POWERED_DOWN", "POWERING_DOWN", "REBOOT")  # idle, but starts no job at once
_DEPTH: Final = 64  # levels of accounts; also ends a cycle
_NO_CONFIG: Final = SlurmConfig({})
_SACCTMGR: Final = ("sacctmgr", "--noheader", "--parsable2", "show")
_MEMBERSHIP: Final = ("account", "partition", "qos", "defaultqos")
_FLAGS: Final = ("name", "flags")
_T = TypeVar("_T")
_FORMAT: Final = "--format=%i|%l|%r"
_COLUMNS: Final = 3
_ONE_BY_ONE: Final = "%1]"  # how Slurm ends the id of an array that runs one task at a time
_MOST: Final = 1000  # jobs counted at most


class CommandRunner(Protocol):
    """Runs one of Slurm's commands. Raises SlurmError."""

    def text(self, *argv: str) -> str:
        """Return the command's output."""
        ...


@dataclass(frozen=True, slots=True)
class Site:
    """Facts about the site; where one could not be read its field is empty and `notes` has the reason.

    `associations` and `qos` have limits and their usage, `memberships` are the user's own associations, with the QOS
    that they may use there. `groups` are the user's on this host; None means unknown, or root, who may use any
    partition.
    """

    partitions: Mapping[str, Partition] = field(default_factory=dict)
    nodes: tuple[Node, ...] = ()
    associations: tuple[Association, ...] = ()
    qos: Mapping[str, Qos] = field(default_factory=dict)
    memberships: tuple[Association, ...] = ()
    config: SlurmConfig = _NO_CONFIG
    uid: int = -1
    groups: frozenset[str] | None = None
    notes: tuple[str, ...] = ()

    @property
    def enforced(self) -> frozenset[str]:
        """The values of AccountingStorageEnforce: limits and QOS apply only if they are among them."""
        return enforced(self.config.settings.get("AccountingStorageEnforce", ""))

    def types(self, partition: str) -> dict[str, int]:
        """Return GPU type -> the most GPUs of it on one usable node of the partition."""
        found: dict[str, int] = {}
        for node in self.nodes:
            if partition in node.partitions and not node.down:
                for kind, count in node.gpus.items():
                    if kind:
                        found[kind] = max(found.get(kind, 0), count)
        return found

    def gpus(self, partition: str) -> int:
        """Return the most GPUs on one node of the partition, of any type."""
        return max((node.gpu_count for node in self.nodes if partition in node.partitions), default=0)

    def has_idle(self, partition: str) -> bool:
        """Whether a node of the partition is idle and accepts jobs."""
        states = (node.state.upper() for node in self.nodes if partition in node.partitions and not node.down)
        return any(state.startswith("IDLE") and not any(word in state for word in _NOT_NOW) for state in states)

    def fair_share(self, account: str, user: str, partition: str) -> float | None:
        """Return the fair share of a user in an account, None where it is unknown or has no weight in priorities."""
        settings = self.config.settings
        if settings.get("PriorityType") != "priority/multifactor" or not _weighs(settings):
            return None
        nearest = next(iter(self.chain(account, user, partition)), None)
        return nearest.fair_share if nearest is not None and nearest.user else None

    def account(self, named: str, user: str) -> str:
        """Return the account that a job is charged to: the named one, else the user's default; "" if unknown."""
        default = next((one.account for one in self.associations if one.user == user and one.default), "")
        return named or default or (self.memberships[0].account if len(self.memberships) == 1 else "")

    def membership(self, account: str, partition: str) -> Association | None:
        """Return the user's association in the account, the partition's own before that of all partitions."""
        own = [one for one in self.memberships if one.account == account and one.partition in {"", partition}]
        return max(own, key=lambda one: one.partition, default=None)

    def chain(self, account: str, user: str, partition: str) -> list[Association]:
        """Return the user's association in the account and the accounts above it, the nearest first."""
        own = [one for one in self.associations if one.account == account and one.user == user]
        found = [one for one in own if one.partition in {"", partition}]
        found = sorted(found, key=lambda one: one.partition, reverse=True)[:1]
        above = {one.account: one for one in self.associations if not one.user}
        while account in above and len(found) < _DEPTH:
            found.append(above[account])
            account = above[account].parent
        return found


def read_site(shown: CommandRunner, user: str, uid: int, groups: frozenset[str] | None = None) -> Site:
    """Query Slurm, one RPC for each kind of fact. Raises SlurmError and ParseError where the partitions are missing."""
    partitions = parse_partitions(shown.text("scontrol", "--all", "show", "partition"))
    notes: list[str] = []

    def tried(what: str, read: Callable[[str], _T], *argv: str) -> _T | None:
        try:
            return read(shown.text(*argv))
        except GpuwasteError as error:
            notes.append(f"cannot read {what}: {error}")
            return None

    nodes = tried("the nodes", parse_nodes, "scontrol", "--all", "--details", "show", "node")
    config = tried("slurm.conf", parse_config, "scontrol", "show", "config")
    limits = tried("the limits", parse_assoc_mgr, "scontrol", "show", "assoc_mgr", "flags=assoc,qos")
    memberships = tried("your accounts", _memberships, *_SACCTMGR, "assoc", f"user={user}", _format(_MEMBERSHIP))
    flags = tried("the flags of QOS", _flags, *_SACCTMGR, "qos", _format(_FLAGS)) or {}
    associations, qos = limits or ((), ())
    return Site(
        partitions={one.name: one for one in partitions},
        nodes=tuple(nodes or ()),
        associations=associations,
        qos={one.name: replace(one, flags=flags.get(one.name, one.flags)) for one in qos},
        memberships=memberships or (),
        config=config or _NO_CONFIG,
        uid=uid,
        groups=groups,
        notes=tuple(notes),
    )


def _weighs(settings: Mapping[str, str]) -> bool:
    return settings.get("PriorityWeightFairShare", "0").strip("0") != ""


def _format(columns: tuple[str, ...]) -> str:
    return f"format={','.join(columns)}"


def _flags(text: str) -> dict[str, frozenset[str]]:
    return {row["name"]: names(row["flags"]) for row in parse_table(text, _FLAGS, "sacctmgr show qos")}


def _memberships(text: str) -> tuple[Association, ...]:
    return tuple(
        Association(row["account"], partition=row["partition"], qos=names(row["qos"]), default_qos=row["defaultqos"])
        for row in parse_table(text, _MEMBERSHIP, "sacctmgr show assoc")
    )


class QueuedJobs(NamedTuple):
    """Number of waiting jobs, each array task counted: those that wait for another job of their user, and others."""

    after: int = 0
    alone: int = 0


def queued_jobs(shown: CommandRunner, user: str, name: str, longest_s: int) -> QueuedJobs:
    """Count the user's waiting jobs of that name with a limit of at most `longest_s`. Raises SlurmError.

    One RPC, only for this user. squeue takes commas as separators, so that a name with one finds nothing.
    """
    words = ("--noheader", f"--user={user}", f"--name={name}", "--states=PENDING", _FORMAT)
    after = alone = 0
    for line in shown.text("squeue", *words).splitlines()[:_MOST]:
        row = line.split("|")
        if len(row) != _COLUMNS or not _short(row[1], longest_s):
            continue
        printed, _, reason = row
        if reason.startswith("Dependency") or printed.endswith(_ONE_BY_ONE):
            after += task_count(printed)
        else:
            alone += task_count(printed)
    return QueuedJobs(min(after, _MOST), min(alone, _MOST))


def _short(text: str, longest_s: int) -> bool:
    try:
        limit_s = parse_duration_s(text)
    except ParseError:
        return False
    return limit_s is not None and limit_s <= longest_s
