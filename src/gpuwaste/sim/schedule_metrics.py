"""A schedule on nodes and its metrics: the definitions of the scheduling literature, and its energy.

Nothing is estimated where nothing was measured. A job's energy is what its own GPUs drew in the history: a job that
starts at another time draws the same. A GPU that is given back is counted at the idle power of its type, measured in
hours in which GPUs of that type were held and idle all the time; it may serve another job, which then draws more.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gpuwaste.core.units import J_PER_KWH
from gpuwaste.jobs.history.job_table import JobTable
from gpuwaste.sim.document import Energy, NodesResult, Waits
from gpuwaste.sim.trace import Ints, Trace
from gpuwaste.slurm.site.cluster_model import Node

SHORTEST_S: Final = 10  # a run that is shorter counts as this long in a bounded slowdown (Feitelson and Rudolph, 1998)
Floats = NDArray[np.float64]
LEAST_IDLE_S: Final = 3600.0  # GPU-seconds of idle hours before the idle power of a type is known


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
    goes on after the window ends where it would end. `nodes_left`: nodes left out; `rows_left`: rows without room.
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


def waits(trace: Trace, start: Ints, processors: int) -> Waits:
    """Return how the jobs of a trace fare when they start at `start` [n], seconds."""
    return Waits(**_values(trace, start, processors))


def _values(trace: Trace, start: Ints, processors: int) -> dict[str, Any]:
    wait = start - trace.submit
    run = np.maximum(trace.run_s, SHORTEST_S)
    p50, p95 = np.percentile(wait, [50, 95])
    makespan = int((start + trace.run_s).max() - trace.submit.min())
    held = int((trace.run_s * trace.procs).sum())
    return {
        "jobs": len(trace),
        "mean_wait_s": round(float(wait.mean()), 3),
        "p50_wait_s": round(float(p50), 3),
        "p95_wait_s": round(float(p95), 3),
        "max_wait_s": int(wait.max()),
        "mean_bounded_slowdown": round(float(np.maximum((wait + trace.run_s) / run, 1.0).mean()), 4),
        "utilization": round(held / (processors * makespan), 6) if makespan else 0.0,
        "makespan_s": makespan,
    }


def measured_energy(table: JobTable, trace: Trace) -> Energy | None:
    """Return the energy of the jobs of a trace; None where none was measured."""
    found = used_j(table)
    if found is None or not found[trace.row].any():
        return None
    held = np.nan_to_num(np.maximum(table.gpus, 0.0))[trace.row] * trace.run_s
    known = np.minimum(_seconds(table)[trace.row], held)
    return Energy(
        used_kwh=round(float(found[trace.row].sum()) / J_PER_KWH, 6),
        measured_share=round(float(known.sum() / held.sum()), 6) if held.sum() else 0.0,
        idle_w={kind or "gpu": round(watts, 3) for kind, watts in idle_watts(table).items()},
    )


def used_j(table: JobTable) -> Floats | None:
    """Return the joules of each row's GPUs [n], 0 where nothing was measured; None where nothing is known at all."""
    return None if table.energy is None else np.nan_to_num(table.energy.joules, nan=0.0)


def idle_watts(table: JobTable) -> Mapping[str, float]:
    """Return the mean power of an idle GPU by type, of the types with LEAST_IDLE_S of idle time."""
    energy = table.energy
    if energy is None:
        return {}
    count = len(energy.gpu_type.values)
    joules = np.bincount(energy.gpu_type.codes, energy.idle_joules, count)
    seconds = np.bincount(energy.gpu_type.codes, energy.idle_seconds, count)
    known = np.flatnonzero(seconds >= LEAST_IDLE_S)
    return {energy.gpu_type.values[kind]: float(joules[kind] / seconds[kind]) for kind in known.tolist()}


def freed_j(table: JobTable, trace: Trace, size: Ints) -> Floats | None:
    """Return the joules [rows of the table] that jobs with these numbers of GPUs [n] draw less, at idle power.

    Of a job, the part of its GPU-time counts in which energy was measured, and never more than it drew. None where no
    idle power is known.
    """
    watts, energy, drawn = idle_watts(table), table.energy, used_j(table)
    if energy is None or drawn is None or not watts:
        return None
    of_type = np.array([watts.get(kind, 0.0) for kind in energy.gpu_type.values])[energy.gpu_type.codes]
    found = np.zeros(len(table))
    rows = trace.row
    share = np.maximum(trace.procs - size, 0) / np.maximum(trace.procs, 1)
    found[rows] = np.minimum(of_type[rows] * _seconds(table)[rows] * share, drawn[rows])
    return found


def _seconds(table: JobTable) -> Floats:
    return np.zeros(len(table)) if table.energy is None else table.energy.seconds
