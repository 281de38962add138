"""What a scheduler on nodes returns of a play."""

from dataclasses import dataclass

from gpuwaste.sim.trace import Ints
from gpuwaste.slurm.site.cluster_model import Node


@dataclass(frozen=True, slots=True)
class Placed:
    """n jobs: the start of the last run of each, -1 for one that never started, and the seconds of that run.

    `requeued` counts runs that began anew, after preemption or as a node failed, `cut_short` jobs that were ended
    by either for good. `gpu_utilization`: the part of the GPU-seconds of each type that was held, from the first
    submission to the last end; runs that were cut short count. `held`: jobs that
    a limit of a QOS or an association held back, by the reason that Slurm gave last.
    """

    start: Ints
    run_s: Ints
    requeued: int
    cut_short: int
    gpu_utilization: dict[str, float]
    held: dict[str, int]


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
