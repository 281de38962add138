"""What a change does to a trace: figures of both sides, their difference, its interval; by user, account, size."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from gpuwaste.core.units import J_PER_KWH
from gpuwaste.jobs.history.job_table import Categories
from gpuwaste.sim.document import Delta, Difference, GroupDelta
from gpuwaste.sim.intervals import MAX_BLOCKS, Blocks, Floats, Interval, drawn, interval, quantiles, ratios
from gpuwaste.sim.schedule_metrics import SHORTEST_S, Placed
from gpuwaste.sim.trace import Ints, Trace

MOST_GROUPS: Final = 20
_LEVELS: Final = {"p50_wait_s": 0.5, "p95_wait_s": 0.95}
_DIGITS: Final = 6


@dataclass(frozen=True, slots=True)
class Run:
    """One simulated run: its jobs, their starts [n] and the size of the machine.

    `gpu_utilization` is the held part of the GPU-seconds of each type, where jobs were placed on nodes that have any.
    """

    trace: Trace
    start: Ints
    processors: int
    gpu_utilization: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, trace: Trace, play: Ints | Placed, processors: int) -> Self:
        """Return the run of a play, without the jobs that never started."""
        if not isinstance(play, Placed):
            return cls(trace, play, processors)
        begun = np.flatnonzero(play.start >= 0)
        ran = replace(trace, run_s=play.run_s).take(begun)
        return cls(ran, play.start[begun], processors, play.result.gpu_utilization)


class Labels(Protocol):
    """What jobs are grouped by, a row for each `trace.row`; a JobTable is one."""

    @property
    def user(self) -> Categories:
        """Users."""
        ...

    @property
    def account(self) -> Categories:
        """Accounts."""
        ...

    @property
    def partition(self) -> Categories:
        """Partitions."""
        ...


@dataclass(frozen=True, slots=True)
class NamedDifference:
    """The name of a difference, and what is known about it."""

    base: str
    change: str
    scheduler: str
    title: str
    facts: dict[str, float]
    notes: Sequence[str] = ()
    unfit: Ints | None = None
    """Rows that do not fit the changed machine: what they hold is not freed."""
    wrapped: Ints | None = None
    """By row of the table: the row of the job that it became a part of; None where no job was joined."""
    energy: tuple[Floats, Floats] | None = None
    """By row of the table: joules that its GPUs drew, and those that they would not draw."""


def difference(table: Labels, base: Run, changed: Run, named: NamedDifference) -> Difference:
    """Return the difference of two runs of the same table's jobs; `changed` may lack some of them."""
    blocks = Blocks.of(base.trace.submit)
    left, right = _pairs(base, changed)
    places = blocks.places(left.trace.submit)
    waits = _waits(left), _waits(right)
    later = (right.start > left.start).astype(np.float64)
    ends = _share_interval(blocks, places, later)
    groups, more = _groups(table, left, waits, blocks)
    return Difference(
        base=named.base,
        change=named.change,
        scheduler=named.scheduler,
        title=named.title,
        processors=changed.processors,
        jobs=len(left.trace),
        blocks=blocks.text,
        figures=_figures(base, changed, (left, right), blocks, named),
        gpu_utilization={
            name: _delta(share, changed.gpu_utilization[name], None)
            for name, share in base.gpu_utilization.items()
            if name in changed.gpu_utilization
        },
        later=_mean(later),
        later_low=None if ends is None else round(ends[0], _DIGITS),
        later_high=None if ends is None else round(ends[1], _DIGITS),
        earlier=_mean((right.start < left.start).astype(np.float64)),
        groups=groups,
        groups_left_out=more,
        facts=named.facts,
        notes=list(named.notes),
    )


def _pairs(base: Run, changed: Run) -> tuple[Run, Run]:
    """Return both runs with the jobs that both have."""
    _, left, right = np.intersect1d(base.trace.row, changed.trace.row, assume_unique=True, return_indices=True)
    return _some(base, left), _some(changed, right)


def _some(run: Run, rows: NDArray[np.intp]) -> Run:
    return Run(run.trace.take(rows), run.start[rows], run.processors, run.gpu_utilization)


def _waits(run: Run) -> Floats:
    return (run.start - run.trace.submit).astype(np.float64)


def _figures(
    base: Run, changed: Run, pair: tuple[Run, Run], blocks: Blocks, named: NamedDifference
) -> dict[str, Delta]:
    left, right = pair
    places = blocks.places(left.trace.submit)
    found = wait_deltas(blocks, places, _waits(left), _waits(right))
    found["mean_bounded_slowdown"] = _mean_delta(blocks, places, _slowdowns(left), _slowdowns(right))
    found["utilization"] = _utilization(base, changed, blocks)
    found["held_h"] = _held(_without(base, named.unfit), changed, blocks)
    found["makespan_s"] = _delta(_makespan(base), _makespan(changed), None)
    if named.wrapped is not None:
        found["mean_chain_s"] = _chains(base, changed, named.wrapped, blocks)
    if named.energy is not None:
        found["gpu_energy_kwh"] = _energy(_without(base, named.unfit), *named.energy, blocks)
    return found


def _chains(base: Run, changed: Run, wrapped: Ints, blocks: Blocks) -> Delta:
    """Compare the time from the first submission to the last end of each chain of jobs that became one."""
    of = wrapped[base.trace.row]
    chains, place, sizes = np.unique(of, return_inverse=True, return_counts=True)
    ends = np.full(len(chains), np.iinfo(np.int64).min)
    np.maximum.at(ends, place, base.start + base.trace.run_s)
    _, left, right = np.intersect1d(chains[sizes > 1], changed.trace.row, assume_unique=True, return_indices=True)
    later = changed.start[right] + changed.trace.run_s[right]
    submit = changed.trace.submit[right]
    before = (ends[sizes > 1][left] - submit).astype(np.float64)
    return _mean_delta(blocks, blocks.places(submit), before, (later - submit).astype(np.float64))


def wait_deltas(
    blocks: Blocks, places: NDArray[np.intp], before: Floats, after: Floats, *, drawn_levels: bool = True
) -> dict[str, Delta]:
    """Return mean, median and 95th percentile of paired waits [n], seconds, with intervals where blocks are enough.

    Without `drawn_levels` only the mean has one.
    """
    found = {"mean_wait_s": _mean_delta(blocks, places, before, after)}
    for name, level in _LEVELS.items():
        if not len(before):
            found[name] = _delta(0.0, 0.0, None)
            continue
        ends = None
        if blocks.enough and drawn_levels:
            ends = interval(quantiles(blocks, places, after, level) - quantiles(blocks, places, before, level))
        found[name] = _delta(_percentile(before, level), _percentile(after, level), ends)
    return found


def _percentile(values: Floats, level: float) -> float:
    return float(np.percentile(values, 100 * level))


def _mean_delta(blocks: Blocks, places: NDArray[np.intp], before: Floats, after: Floats) -> Delta:
    ends = _share_interval(blocks, places, after - before)
    return _delta(_mean(before), _mean(after), ends)


def _share_interval(blocks: Blocks, places: NDArray[np.intp], values: Floats) -> Interval:
    """Return the interval of the mean of values [n]."""
    if not blocks.enough or not len(values):
        return None
    sums = np.bincount(places, values, blocks.count).astype(np.float64)
    return interval(ratios(blocks.draws, sums, np.bincount(places, minlength=blocks.count).astype(np.float64)))


def _slowdowns(run: Run) -> Floats:
    lasts = np.maximum(run.trace.run_s, SHORTEST_S)
    return np.maximum((_waits(run) + run.trace.run_s) / lasts, 1.0)


def _without(run: Run, rows: Ints | None) -> Run:
    return run if rows is None else _some(run, np.flatnonzero(~np.isin(run.trace.row, rows)))


def _makespan(run: Run) -> float:
    return float((run.start + run.trace.run_s).max() - run.trace.submit.min()) if len(run.trace) else 0.0


def _utilization(base: Run, changed: Run, blocks: Blocks) -> Delta:
    """Compare shares of the machine, each from its first submission to its last end; blocks are of the runs' time."""
    last = max(int((run.start + run.trace.run_s).max(initial=blocks.origin)) for run in (base, changed))
    length = blocks.length_s * max(1, -(-(last - blocks.origin) // (blocks.length_s * MAX_BLOCKS)))
    sides = [_held_by_block(run, blocks, length) for run in (base, changed)]
    values = [float(held.sum() / whole.sum()) if whole.sum() else 0.0 for held, whole in sides]
    if not blocks.enough:
        return _delta(values[0], values[1], None)
    count = max(len(held) for held, _ in sides)
    draws = drawn(count)
    shares = [ratios(draws, _padded(held, count), _padded(whole, count)) for held, whole in sides]
    return _delta(values[0], values[1], interval(shares[1] - shares[0]))


def _padded(values: Floats, count: int) -> Floats:
    return np.concatenate([values, np.zeros(count - len(values))])


def _held_by_block(run: Run, blocks: Blocks, length_s: int) -> tuple[Floats, Floats]:
    """Return the processor-seconds that are held in each block, and those that the machine has in it."""
    if not len(run.trace):
        return np.zeros(1), np.zeros(1)
    first, end = run.start, run.start + run.trace.run_s
    last = int(end.max())
    edges = np.arange(blocks.origin, last + length_s, length_s)
    edges = np.append(edges[edges < last], last) if last > blocks.origin else np.array([last, last])
    held = np.diff(held_until(first, end, run.trace.procs, edges))
    begin = np.maximum(edges, int(run.trace.submit.min()))
    whole: Floats = np.diff(begin).astype(np.float64) * run.processors
    return held, whole


def held_until(first: Ints, end: Ints, size: Ints, edges: Ints) -> Floats:
    """Return the processor-seconds held before each edge [k], of jobs from `first` to `end` [n] of a size each."""
    held: Floats = _area(first, size, edges) - _area(end, size, edges)
    return held


def _area(instants: Ints, size: Ints, edges: Ints) -> Floats:
    """Return the sum over instants before each edge of size x (edge - instant); floats, as integers may overflow."""
    order = np.argsort(instants, kind="stable")
    at = instants[order].astype(np.float64) - float(edges[0])
    sizes = size[order].astype(np.float64)
    sums = np.concatenate([[0.0], np.cumsum(sizes)]), np.concatenate([[0.0], np.cumsum(sizes * at)])
    place = np.searchsorted(instants[order], edges, side="left")
    found: Floats = sums[0][place] * (edges - edges[0]).astype(np.float64) - sums[1][place]
    return found


def _held(base: Run, changed: Run, blocks: Blocks) -> Delta:
    """Compare hours held of the resource: what a change frees is the negative difference."""
    hours = [
        np.bincount(blocks.places(run.trace.submit), run.trace.run_s * run.trace.procs / 3600, blocks.count)
        for run in (base, changed)
    ]
    ends = interval(blocks.draws @ (hours[1] - hours[0])) if blocks.enough else None
    return _delta(float(hours[0].sum()), float(hours[1].sum()), ends)


def _energy(base: Run, drawn: Floats, saved: Floats, blocks: Blocks) -> Delta:
    """Compare the measured energy of the base's jobs with the same less what is saved, kWh."""
    places, rows = blocks.places(base.trace.submit), base.trace.row
    used, less = (np.bincount(places, joules[rows] / J_PER_KWH, blocks.count) for joules in (drawn, saved))
    ends = interval(-(blocks.draws @ less)) if blocks.enough else None
    return _delta(float(used.sum()), float(used.sum() - less.sum()), ends)


def _groups(
    table: Labels, left: Run, waits: tuple[Floats, Floats], blocks: Blocks
) -> tuple[dict[str, list[GroupDelta]], dict[str, int]]:
    """Return the groups of each kind with most jobs, and how many are not among them."""
    rows = left.trace.row.astype(np.intp)
    kinds = {name: getattr(table, name).take(rows) for name in ("user", "account", "partition")}
    kinds["size"] = sizes_of(left.trace.procs)
    places = blocks.places(left.trace.submit)
    found, more = {}, {}
    for kind, column in kinds.items():
        counts = np.bincount(column.codes, minlength=len(column.values))
        present = int(np.count_nonzero(counts))
        if present < 2 and kind != "size":  # noqa: PLR2004 the figures already describe a single group
            continue
        order = np.argsort(-counts, kind="stable")[: min(MOST_GROUPS, present)]
        if kind == "size":
            order = np.sort(order)
        found[kind] = [_group(column, int(code), blocks, places, waits) for code in order]
        if present > MOST_GROUPS:
            more[kind] = present - MOST_GROUPS
    return found, more


def _group(
    column: Categories, code: int, blocks: Blocks, places: NDArray[np.intp], waits: tuple[Floats, Floats]
) -> GroupDelta:
    rows = np.flatnonzero(column.codes == code)
    deltas = wait_deltas(blocks, places[rows], waits[0][rows], waits[1][rows], drawn_levels=False)
    return GroupDelta(name=column.values[code], jobs=len(rows), **deltas)


def sizes_of(procs: Ints) -> Categories:
    """Return the size class of each job [n]: 0, 1, 2, 3-4, 5-8 and so on, by powers of two."""
    classes = np.where(procs < 1, 0, 1 + np.ceil(np.log2(np.maximum(procs, 1)))).astype(np.int32)
    names = ["0", "1", "2", *(f"{2 ** (k - 1) + 1}-{2**k}" for k in range(2, int(classes.max(initial=1))))]
    return Categories(classes, tuple(names))


def _mean(values: Floats) -> float:
    return round(float(values.mean()), _DIGITS) if len(values) else 0.0


def _delta(base: float, changed: float, ends: Interval) -> Delta:
    return Delta(
        base=round(base, _DIGITS),
        changed=round(changed, _DIGITS),
        difference=round(changed - base, _DIGITS),
        low=None if ends is None else round(ends[0], _DIGITS),
        high=None if ends is None else round(ends[1], _DIGITS),
    )
