"""Gantt charts of a simulation's runs on nodes: which job held which GPU of which node in a window.

The simulator counts the GPUs of a node and does not number them. A bar takes the lowest numbers that are free when its
job starts, and keeps them; slurmctld may choose others. Nodes without GPUs have their CPUs numbered like that.

The window is known only after the first play, as it is the day around the deepest queue; and a play that keeps every
placement would need memory for each node of each job. So the first play keeps none, the second those of the window.
"""

import heapq
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np
from msgspec.structs import replace

from gpuwaste.core.errors import NoDataError
from gpuwaste.core.units import DAY_S
from gpuwaste.sim.counterfactual import Counterfactual
from gpuwaste.sim.document import GanttBar, GanttNode, GanttWindow
from gpuwaste.sim.schedule_metrics import Placements
from gpuwaste.sim.simulation import SCHEDULERS, believed_walltimes, places_on_nodes
from gpuwaste.sim.trace import Ints, Trace
from gpuwaste.slurm.site.cluster_model import Node, Outage

MOST_BARS: Final = 800
Window = tuple[int, int]
"""From, until, UTC seconds."""
MOST_CHARTS: Final = 3


def window_of(given: Window | None, trace: Trace, start: Ints) -> Window:
    """Return the given window, else the day around the instant at which most jobs wait; jobs start at `start` [n >= 1].

    Raises NoDataError for a window in which nothing is simulated.
    """
    first, last = int(trace.submit[0]), int((start + trace.run_s).max())
    if given is not None:
        if given[1] <= first or given[0] >= last:
            raise NoDataError(f"--gantt: no job runs in the window; the simulation is from @{first} to @{last}")
        return given
    begin = max(first, min(_deepest(trace, start) - DAY_S // 2, last - DAY_S))
    return begin, max(begin + 1, min(last, begin + DAY_S))


def _deepest(trace: Trace, start: Ints) -> int:
    """Return the first instant at which most jobs wait; a job that starts as it is submitted never does."""
    instants = np.concatenate([start, trace.submit])
    changes = np.repeat([-1, 1], len(trace))
    order = np.argsort(instants, kind="stable")
    depth = np.cumsum(changes[order])
    ends = np.append(np.diff(instants[order]) > 0, True)
    settled = np.flatnonzero(ends)
    return int(instants[order][settled[int(np.argmax(depth[settled]))]])


def gantt(
    name: str, placed: Placements, trace: Trace, job_id: Ints, outages: Iterable[Outage], window: Window
) -> GanttWindow:
    """Return the chart of a run: as many of the nodes as have MOST_BARS bars; `job_id` [n] are of the trace's jobs."""
    down: dict[str, list[Window]] = {}
    for outage in outages:
        if outage.start < window[1] and outage.end > window[0]:
            down.setdefault(outage.node, []).append((outage.start, outage.end))
    bars: list[GanttBar] = []
    bounds, drawn, short = np.searchsorted(placed.node, np.arange(len(placed.nodes) + 1)).tolist(), 0, placed.rows_left
    for place, node in enumerate(placed.nodes):
        more = list(_bars(placed, range(bounds[place], bounds[place + 1]), node, trace, job_id))
        if place and len(bars) + len(more) > MOST_BARS:
            break
        drawn += 1
        more.sort(key=lambda bar: bar.start - bar.end)  # of a node with too many the longest are kept
        short += len(more[MOST_BARS:])
        bars += more[:MOST_BARS]
    counts = {"nodes": placed.nodes_left + len(placed.nodes) - drawn, "bars": short}
    return GanttWindow(
        name=name,
        start=window[0],
        end=window[1],
        nodes=[
            GanttNode(name=node.name, gpus=node.gpu_count, cpus=node.cpus, down=down.get(node.name, [])[:MOST_BARS])
            for node in placed.nodes[:drawn]
        ],
        bars=sorted(bars, key=lambda bar: (bar.node, bar.start, bar.first)),
        left_out={what: count for what, count in counts.items() if count},
    )


def _bars(placed: Placements, rows: Sequence[int], node: Node, trace: Trace, job_id: Ints) -> Iterator[GanttBar]:
    """Yield a bar for each stretch of neighbouring numbers that a job holds of a node; `rows` are by start."""
    amounts = placed.gpus if node.gpu_count else placed.cpus
    free = list(range(node.gpu_count or node.cpus))
    running: list[tuple[int, list[int]]] = []
    for row in rows:
        start, end, job = int(placed.start[row]), int(placed.end[row]), int(placed.job[row])
        while running and running[0][0] <= start:
            for number in heapq.heappop(running)[1]:
                heapq.heappush(free, number)
        held = [heapq.heappop(free) for _ in range(min(int(amounts[row]), len(free)))]
        heapq.heappush(running, (end, held))
        for first, count in _stretches(held):
            yield GanttBar(
                node=int(placed.node[row]),
                first=first,
                count=count,
                job_id=int(job_id[job]),
                start=start,
                end=end,
                waited_s=start - int(trace.submit[job]),
            )


def _stretches(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield first and count of each run of neighbours among rising numbers."""
    first = 0
    for place in range(1, len(numbers) + 1):
        if place == len(numbers) or numbers[place] != numbers[place - 1] + 1:
            yield numbers[first], place - first
            first = place


def with_gantts(found: Counterfactual, given: Window | None, past: Ints | None) -> Counterfactual:
    """Return the answer with a chart of each of the first MOST_CHARTS runs on nodes, all of one window.

    `past` is as for simulate(). Raises NoDataError for a window without jobs.
    """
    on_nodes = [name for name, played in found.played.items() if places_on_nodes(SCHEDULERS[played.scheduler])]
    if not on_nodes:
        return found
    window = window_of(given, found.runs[on_nodes[0]].trace, found.runs[on_nodes[0]].start)
    charts = [_chart(name, found, window, past) for name in on_nodes[:MOST_CHARTS]]
    return Counterfactual(replace(found.document, gantt=charts), found.runs, found.played)


def _chart(name: str, found: Counterfactual, window: Window, past: Ints | None) -> GanttWindow:
    scheduler, table, trace, cluster = found.played[name]
    module = SCHEDULERS[scheduler]
    if cluster is None or not places_on_nodes(module):
        raise ValueError(f"{name} places no job on a node")
    believed = believed_walltimes(trace, found.document.walltime, past)
    placed = module.placements(table, trace, cluster, believed, window)
    return gantt(name, placed, trace, table.job_id[trace.row], cluster.outages, window)
