"""What is known of the machine by time. Instants are UTC seconds, memory is in bytes, None as an end is "continues".

Outages and reservations are those of slurm/site/machine_events.py.
"""

from dataclasses import dataclass
from typing import Final, NamedTuple

from gpuwaste.slurm.site.machine_events import NodeOutage, ReservedNodes

__all__ = ["HeldAmount", "MachineKnown", "MachineNode", "NodeOutage", "ReservedNodes", "RunOnNodes"]
ALWAYS: Final = 0
"""`since` of a node whose configuration is that of a file, or is assumed for all time before it was seen first."""
POOL: Final = "(all nodes)"
"""The one node of a machine whose runs do not name their nodes."""


class MachineNode(NamedTuple):
    """A node and its configuration from `since` until `until`; names are in order, joined by commas.

    CPUs and memory are those that jobs can have. `gpu_type` is "" where no type is named.
    """

    node: str
    since: int
    until: int | None
    gpus: int
    gpu_type: str
    cpus: int
    memory_b: int
    partitions: str
    features: str


class HeldAmount(NamedTuple):
    """What a run holds on one node."""

    node: str
    gpus: int
    cpus: int
    memory_b: int


class RunOnNodes(NamedTuple):
    """A run and what it holds on each of its nodes, from `start` until `end`.

    `exact`: slurmctld printed the amounts, or it is one node. Otherwise they are spread evenly, the rest to the first
    nodes. The node is POOL where accounting does not name them.
    """

    job_id: int
    run_start: int
    start: int
    end: int | None
    exact: bool
    amounts: tuple[HeldAmount, ...]


@dataclass(frozen=True, slots=True)
class MachineKnown:
    """From when on something is known of a cluster's machine; None: nothing is.

    `nodes`: since when the configuration is recorded, ALWAYS for that of a file. `events`, `reservations`: since when
    there are outages and reservations, and until when slurmdbd has told them completely; None: they are those that
    slurmctld had when it was read. `inferred`: nodes are only what runs held.
    """

    nodes: int | None = None
    events: int | None = None
    events_until: int | None = None
    reservations: int | None = None
    reservations_until: int | None = None
    inferred: bool = False
