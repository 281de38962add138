"""A machine and what happened on it: the input of the second-by-second reference of the balance.

Times are whole seconds, spans are [start, end), memory is in bytes; None is not known, or not yet.
"""

from dataclasses import dataclass, field
from functools import cached_property

LIMIT_WORDS = ("QOS", "Assoc", "Partition")
ENDLESS = 10**12


def up(amount: int, parts: int) -> int:
    """Return the amount of the largest of equal parts."""
    return -(-amount // parts)


@dataclass(frozen=True)
class Node:
    """What a node is in [start, end)."""

    name: str
    start: int
    end: int
    gpus: int
    gpu_type: str
    """Several joined by commas: it has GPUs of each."""
    cpus: int
    memory: int
    partitions: tuple[str, ...]
    features: frozenset[str] = frozenset()

    @property
    def label(self) -> str:
        """The partitions of the node in one word."""
        return ",".join(self.partitions)


@dataclass(frozen=True)
class Outage:
    """A node's state from `sacctmgr show event`; no end: it lasts."""

    node: str
    start: int
    end: int | None
    state: str


@dataclass(frozen=True)
class Reservation:
    """Nodes that are reserved as a whole."""

    name: str
    nodes: tuple[str, ...]
    start: int
    end: int
    flags: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Amount:
    """What a run holds on one node."""

    gpus: int
    cpus: int
    memory: int


NOTHING = Amount(0, 0, 0)


@dataclass(frozen=True, eq=False)
class Run:
    """One run of a job: what it requested, and on `held` what it got on which node between start and end."""

    job_id: int
    submit: int
    eligible: int | None
    start: int | None
    end: int | None
    gpus: int
    """In all, as cpus and memory; 0 for none requested."""
    cpus: int
    memory: int
    nodes: int = 1
    gpu_type: str = ""
    partitions: tuple[str, ...] = ()
    constraint: str | None = ""
    """Names of features joined by & (all of them) or | (one of them), "" for none; None for one that cannot be read."""
    reservation: str = ""
    reason: str = ""
    limit_s: int | None = None
    is_held: bool = False
    """Held by a user or an administrator: it has no eligible time."""
    held: dict[str, Amount] = field(default_factory=dict)
    is_estimated: bool = False
    """Nobody read what it holds on each of its nodes: `held` is an even share."""

    @property
    def waits_from(self) -> int:
        """When it was eligible; where that is not known, when it was submitted."""
        return self.submit if self.eligible is None else self.eligible

    @property
    def share(self) -> Amount:
        """What it needs on each node."""
        return Amount(up(self.gpus, self.nodes), up(self.cpus, self.nodes), up(self.memory, self.nodes))

    @property
    def is_limited(self) -> bool:
        """Whether Slurm gave a limit of QOS, association or partition as the reason why it waits."""
        return self.reason.startswith(LIMIT_WORDS)

    @property
    def key(self) -> tuple[int, int]:
        """The job id and the start; for a job that never starts the submission."""
        return self.job_id, self.submit if self.start is None else self.start

    @property
    def gpu_nodes(self) -> list[str]:
        """The nodes on which it gets GPUs."""
        return [name for name, amount in self.held.items() if amount.gpus]

    def holds(self, node: str, t: int) -> bool:
        """Whether it holds something on the node in this second."""
        return (
            node in self.held
            and self.start is not None
            and self.start <= t < (ENDLESS if self.end is None else self.end)
        )


@dataclass(frozen=True, eq=False)
class Case:
    """A machine with all that happened on it, and the window [start, end) that is asked about."""

    start: int
    end: int
    nodes: tuple[Node, ...]
    """Several entries of one name: the node was changed."""
    outages: tuple[Outage, ...] = ()
    reservations: tuple[Reservation, ...] = ()
    runs: tuple[Run, ...] = ()
    states_from: int = 0
    """Before this second the states of nodes are not known."""

    @cached_property
    def names(self) -> list[str]:
        """The nodes' names, each once."""
        return sorted({node.name for node in self.nodes})
