"""A Gantt chart of a simulated run, as data: what jobs hold of nodes, shaded by how long they had waited."""

from bisect import bisect_right
from typing import Final

from gpuwaste.core.units import HOUR_S, MINUTE_S, say_duration
from gpuwaste.show.cells import fit
from gpuwaste.show.chart import Axis, Gantt, Row, Span
from gpuwaste.sim import document

GPUS_NUMBERED: Final = (
    "In the Gantt chart a job has the lowest free GPUs of its node: the simulation counts the GPUs of a node and does "
    "not number them. Jobs that hold no GPU of these nodes are not drawn."
)
_WAITS_S: Final = (MINUTE_S, HOUR_S, 6 * HOUR_S)
_SHADES: Final = ("waited under 1 min", "under 1 h", "under 6 h", "6 h and more")


def gantt_chart(found: document.GanttWindow) -> Gantt:
    """Return the chart; a node without GPUs has one lane, which its CPUs share."""
    left = [f"{count:,} {what}" for what, count in found.left_out.items()]
    gpus = any(node.gpus for node in found.nodes)
    return Gantt(
        title=f"{'GPUs' if gpus else 'Nodes'} by job: {fit(found.name, 60)}",
        x=Axis(title="", scale="time"),
        start=found.start,
        end=found.end,
        rows=[Row(name=node.name, lanes=max(1, node.gpus), down=node.down) for node in found.nodes],
        spans=[_span(bar, found.nodes[bar.node]) for bar in found.bars],
        shades=_SHADES,
        note=f"Not drawn: {' and '.join(left)}." if left else "",
    )


def _span(bar: document.GanttBar, node: document.GanttNode) -> Span:
    part = 1.0 if node.gpus else 1 / max(1, node.cpus)
    last = f" to {bar.first + bar.count - 1}" if bar.count > 1 else ""
    held = f"GPU {bar.first}{last}" if node.gpus else f"{bar.count} of {node.cpus} CPUs"
    return Span(
        row=bar.node,
        first=bar.first * part,
        lanes=bar.count * part,
        start=bar.start,
        end=bar.end,
        shade=bisect_right(_WAITS_S, bar.waited_s),
        name=f"job {bar.job_id}",
        words=f"{node.name} {held}, waited {say_duration(bar.waited_s)}",
    )
