"""What a scheduler on nodes returns of a play."""

from dataclasses import dataclass

from gpuwaste.sim.document import NodesResult
from gpuwaste.sim.trace import Ints
from gpuwaste.slurm.site.cluster_model import Node


@dataclass(frozen=True, slots=True)
class Placed:
    """n jobs: the start of the last run of each, -1 for one that never started, and the seconds of that run."""

    start: Ints
    run_s: Ints
    result: NodesResult


@dataclass(frozen=True, slots=True)
class Placements:
    """What jobs held of some nodes of a cluster in a window.

    r rows by node and start: `node` is a place in `nodes`, `job` in the trace, instants are UTC seconds; a run that
    goes on after the window ends where it would end. `nodes_left` nodes are left out, `rows_left` rows have no room.
    """

    nodes: tuple[Node, ...]
    node: Ints
    job: Ints
    start: Ints
    end: Ints
    cpus: Ints
    gpus: Ints
    nodes_left: int
    rows_left: int


def start_of(play: Ints | Placed) -> Ints:
    """Return the starts of a play, by a scheduler on nodes or by one that counts."""
    return play.start if isinstance(play, Placed) else play
