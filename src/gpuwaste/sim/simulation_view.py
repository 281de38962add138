"""A simulation as a view: the difference from the base first, then plots, a row for each figure, notes."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final

from gpuwaste.core.units import HOUR_S, MINUTE_S, say_duration
from gpuwaste.show.chart import Axis, Chart, Gantt, Lines, Role, Row, Span
from gpuwaste.show.chart import Series as Line
from gpuwaste.show.terminal_cells import fit, percent
from gpuwaste.show.view_document import Column, Fact, ViewDocument
from gpuwaste.sim import document
from gpuwaste.sim.difference_words import (
    FIGURES,
    counts,
    energy_words,
    figures_of,
    interval_words,
    name_of,
    not_modelled,
    said,
    seed_rows,
    seeds_notes,
    sentence,
    signed,
)
from gpuwaste.sim.document import (
    Delta,
    Difference,
    SchedulerResult,
    SimulatedSeries,
    SimulationDocument,
    left_out_words,
)

NAME: Final = "simulation"
_COLUMNS: Final = tuple(
    Column(name=title.lower().replace(" ", "_").replace("%_", ""), title=title)
    for title in ("Change", "Scheduler", "Of", "Figure", "Base", "Changed", "Difference", "95 % interval")
)
_UNITS: Final = {"s": "s", "share": "share", "h": "h", "kWh": "kWh", "": ""}
_ROLES: Final[tuple[Role, ...]] = ("main", "second", "muted", "other")
_QUERY: Final = "simulate"
_MOST_LINES: Final = len(_ROLES)
_GPUS_NUMBERED: Final = (
    "The Gantt chart draws a job on the lowest free GPUs of its node: the simulation counts the GPUs of a node but "
    "does not number them. Jobs that hold no GPU of these nodes are not drawn."
)
_WAITS_S: Final = (MINUTE_S, HOUR_S, 6 * HOUR_S)
_SHADES: Final = ("waited under 1 min", "under 1 h", "under 6 h", "6 h and more")


def simulation_view(document: SimulationDocument, *, cluster: str, command: str, at: int) -> ViewDocument:
    """Return the view; `command` made it, `at` that time, UTC seconds."""
    series = document.series
    first, last = (series[0].at[0], series[0].at[-1]) if series else (at, at)
    return ViewDocument(
        view=NAME,
        title=f"Simulation of {fit(document.trace, 80)}",
        question="What would another scheduler, other requests or another machine have done?",
        clusters=[cluster],
        start=first,
        end=last,
        generated=at,
        columns=_COLUMNS,
        rows=[list(row) for row in rows(document)],
        rows_left_out=0,
        charts=_charts(document),
        facts=list(_facts(document)),
        narrative=[*narrative(document)],
        notes=[*notes(document)],
        sql=command,
        parameters={"processors": document.processors, "walltime": document.walltime, "resource": document.resource},
    )


def narrative(document: SimulationDocument) -> Iterator[str]:
    """Yield the differences with their intervals; without any, what each scheduler did."""
    for difference in document.differences:
        yield sentence(difference, document.resource)
    for name, result in document.schedulers.items():
        yield f"{name}: mean wait {said(result.mean_wait_s, 's')}, {percent(result.utilization)} of the machine used."


def notes(document: SimulationDocument) -> Iterator[str]:
    """Yield what a reader must know."""
    if document.stopped:
        yield document.stopped
    for difference in document.differences:
        if difference.facts:
            yield f"{name_of(difference)}: {counts(difference)}"
    yield from dict.fromkeys(chain.from_iterable(difference.notes for difference in document.differences))
    for words in left_out_words(document):
        yield f"{words}."
    yield from energy_words(document)
    yield from seeds_notes(document)
    if document.gantt:
        yield _GPUS_NUMBERED
    yield from not_modelled(document)


def rows(document: SimulationDocument) -> Iterator[Sequence[str]]:
    """Yield a row for each figure of each difference, then those of schedulers without one."""
    for difference in document.differences:
        yield from _of(difference, document.resource)
        if document.seeds is not None:
            yield from seed_rows(difference, document.seeds, document.resource)
    if not document.differences:
        for name, result in document.schedulers.items():
            yield from _alone(name, result)


def _of(difference: Difference, resource: str) -> Iterator[Sequence[str]]:
    for _, label, unit, delta in figures_of(difference, resource):
        yield _row(difference, "all jobs", label, delta, unit)
    for kind, groups in difference.groups.items():
        for group in groups:
            yield _row(difference, f"{kind} {group.name}", "mean wait", group.mean_wait_s, "s")
            yield _row(difference, f"{kind} {group.name}", "95th percentile wait", group.p95_wait_s, "s")


def _row(difference: Difference, of: str, label: str, delta: Delta, unit: str) -> Sequence[str]:
    ends = interval_words(delta, unit)
    cells = (said(delta.base, unit), said(delta.changed, unit), signed(delta.difference, unit), ends)
    return (difference.change, difference.scheduler, of, label, *cells)


def _alone(name: str, result: SchedulerResult) -> Iterator[Sequence[str]]:
    for figure, (label, unit) in FIGURES.items():
        value = getattr(result, figure, None)
        if value is not None:
            yield ("-", name, "all jobs", label, said(value, unit), "-", "-", "-")


def _facts(document: SimulationDocument) -> Iterator[Fact]:
    for number, difference in enumerate(document.differences, 1):
        for name, label, unit, delta in figures_of(difference, document.resource):
            yield Fact(
                id=f"{name}.{number}",
                value=delta.difference,
                unit=_UNITS[unit],
                text=signed(delta.difference, unit),
                means=f"{label}, {name_of(difference)} less base",
                query=_QUERY,
                low=delta.low,
                high=delta.high,
            )


def _charts(document: SimulationDocument) -> list[Chart]:
    """Return utilization, queue depth and waits over time, of the first base and its comparisons; Gantt charts."""
    shown = document.series[:_MOST_LINES]
    if not shown:
        return []
    x, resource = Axis(title="", scale="time"), document.resource
    return [
        _lines("Held share of the machine", x, Axis(title=f"{resource} held", unit="%"), shown, "used"),
        _lines("Jobs in the queue", x, Axis(title="jobs", unit="jobs"), shown, "waiting"),
        _lines("Mean wait by submission", x, Axis(title="mean wait", unit="s"), shown, "mean_wait_s"),
        *map(_gantt_chart, document.gantt),
    ]


def _lines(title: str, x: Axis, y: Axis, series: Sequence[SimulatedSeries], field: str) -> Lines:
    scale = 100 if field == "used" else 1
    lines = [
        Line(name=one.name, role=role, y=[None if value is None else value * scale for value in getattr(one, field)])
        for one, role in zip(series, _ROLES, strict=False)
    ]
    return Lines(title=title, x=x, y=y, at=series[0].at, series=lines)


def _gantt_chart(found: document.GanttWindow) -> Gantt:
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
