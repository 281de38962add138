"""A simulated run over time, in bins that several runs share: what is held, what waits, how long jobs wait."""

from collections.abc import Mapping
from typing import Final

import numpy as np

from gpuwaste.sim.difference import Run, held_until
from gpuwaste.sim.document import SimulatedSeries
from gpuwaste.sim.trace import Ints

BINS: Final = 168


def series_of(runs: Mapping[str, Run]) -> list[SimulatedSeries]:
    """Return each run over time, from the first submission to the last end of any of them."""
    kept = {name: run for name, run in runs.items() if len(run.trace)}
    if not kept:
        return []
    first = min(int(run.trace.submit[0]) for run in kept.values())
    last = max(int((run.start + run.trace.run_s).max()) for run in kept.values())
    count = max(1, min(BINS, last - first))
    edges = first + (last - first) * np.arange(count + 1, dtype=np.int64) // count
    return [_series(name, run, edges) for name, run in kept.items()]


def _series(name: str, run: Run, edges: Ints) -> SimulatedSeries:
    trace, lasts = run.trace, np.maximum(np.diff(edges), 1)
    held = np.diff(held_until(run.start, run.start + trace.run_s, trace.procs, edges))
    waiting = np.diff(held_until(trace.submit, run.start, np.ones_like(trace.procs), edges))
    places = np.clip(np.searchsorted(edges, trace.submit, side="right") - 1, 0, len(lasts) - 1)
    counts = np.bincount(places, minlength=len(lasts))
    sums = np.bincount(places, run.start - trace.submit, len(lasts))
    return SimulatedSeries(
        name=name,
        at=edges[:-1].tolist(),
        used=np.round(held / (lasts * run.processors), 4).tolist(),
        waiting=np.round(waiting / lasts, 3).tolist(),
        mean_wait_s=[round(float(s / c), 1) if c else None for s, c in zip(sums, counts, strict=True)],
    )
