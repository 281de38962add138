"""What a schedule is worth, by the definitions of the scheduling literature."""

from typing import Any, Final

import numpy as np

from gpuwaste.sim.document import Waits
from gpuwaste.sim.trace import Ints, Trace

SHORTEST_S: Final = 10  # a run that is shorter counts as this long in a bounded slowdown (Feitelson and Rudolph, 1998)


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
