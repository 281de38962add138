"""What a scheduler on nodes returns of a play."""

from dataclasses import dataclass

from gpuwaste.sim.trace import Ints


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


def start_of(play: Ints | Placed) -> Ints:
    """Return the starts of a play, by a scheduler on nodes or by one that counts."""
    return play.start if isinstance(play, Placed) else play
