"""Gantt charts of a simulation's runs on nodes: each is played once more, up to the end of a window.

The window is known only after the first play, as it is the day around the deepest queue; and a play that keeps every
placement would need memory for each node of each job. So nothing is kept at first, and a window's part of it then.
"""

from typing import Final

from msgspec.structs import replace

from gpuwaste.sim.counterfactual import Counterfactual
from gpuwaste.sim.document import GanttWindow
from gpuwaste.sim.gantt import Window, gantt, window_of
from gpuwaste.sim.simulation import SCHEDULERS, believed_walltimes, places_on_nodes
from gpuwaste.sim.trace import Ints

MOST_CHARTS: Final = 3


def with_gantts(found: Counterfactual, given: Window | None, past: Ints | None) -> Counterfactual:
    """Return the answer with a chart of each of the first MOST_CHARTS runs on nodes, all of one window.

    `past` as simulate() has it. Raises NoDataError for a window without jobs.
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
