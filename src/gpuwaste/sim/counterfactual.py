"""A simulation with its what-ifs: every scheduler plays every change, which is compared with the base."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as changed_to
from typing import Final, NamedTuple

import numpy as np
from msgspec.structs import replace

from gpuwaste.core.errors import NoDataError, UsageError
from gpuwaste.jobs.history.job_table import JobTable
from gpuwaste.sim.difference import NamedDifference, Run, difference, held_until
from gpuwaste.sim.document import Delta, Difference, Proposal, SimulatedSeries, SimulationDocument
from gpuwaste.sim.schedule_metrics import Placed, used_j
from gpuwaste.sim.simulation import SCHEDULERS, places_on_nodes, playable, played
from gpuwaste.sim.trace import Ints, Trace
from gpuwaste.sim.whatif import WHATIFS, WhatIfCase, WhatIfChange, changed, label, needs_cluster
from gpuwaste.slurm.site.cluster_model import ClusterModel

Progress = Callable[[str], None]
BINS: Final = 168
_FIGURE = "mean_wait_s"


class Played(NamedTuple):
    """What a scheduler was given: rows of the table, the jobs, the cluster where it knows one."""

    scheduler: str
    table: JobTable
    trace: Trace
    cluster: ClusterModel | None


@dataclass(frozen=True, slots=True)
class Counterfactual:
    """The answer, and each simulated run by its name: the scheduler, or what-if and scheduler; what each one played."""

    document: SimulationDocument
    runs: Mapping[str, Run]
    played: Mapping[str, Played] = field(default_factory=dict)


def compared(
    document: SimulationDocument,
    case: WhatIfCase,
    plays: Mapping[str, Ints | Placed],
    wanted: Sequence[tuple[str, str]],
    *,
    past: Ints | None = None,
    progress: Progress = lambda _: None,
    left_out: Callable[[NoDataError], None] | None = None,
) -> Iterator[Counterfactual]:
    """Yield the growing answer: schedulers compared with the first one, then each what-if with the same scheduler.

    `plays` are the base's, by scheduler. A change that no job allows is passed to `left_out`, where it is set. Raises
    UsageError, NoDataError, ConfigError.
    """
    runs = {name: Run.of(case.trace, play, case.processors) for name, play in plays.items()}
    given = {name: Played(name, case.table, case.trace, case.cluster) for name in plays}
    first = next(iter(plays))
    found = [
        difference(case.table, runs[first], runs[name], NamedDifference(first, name, name, SCHEDULERS[name].TITLE, {}))
        for name in plays
        if name != first
    ]
    yield _grown(document, found, runs, given)
    for name, value in wanted:
        words = label(name, value)
        try:
            change = _playable(case, changed(case, name, value), tuple(plays))
        except NoDataError as error:
            if left_out is None:
                raise
            left_out(error)
            continue
        table, cluster = change.table or case.table, change.cluster or case.cluster
        for scheduler, play in played(
            table, change.trace, change.processors, tuple(plays), document.walltime, past, cluster
        ):
            run = runs[f"{words}:{scheduler}"] = Run.of(change.trace, play, change.processors)
            if not len(run.trace):
                raise NoDataError(f"what-if {words[:80]}: no job would ever start under {scheduler}")
            named = _named(words, name, change, scheduler, never=len(change.trace) - len(run.trace))
            if change.saved_j is not None and (drawn := used_j(case.table)) is not None and document.energy is not None:
                named = changed_to(named, energy=(drawn, change.saved_j))
            found.append(difference(case.table, runs[scheduler], run, named))
            progress(f"{words}:{scheduler}")
            given[f"{words}:{scheduler}"] = Played(scheduler, table, change.trace, cluster)
            yield _grown(document, found, runs, given)


def check_schedulers(wanted: Sequence[tuple[str, str]], chosen: Sequence[str]) -> None:
    """Raise UsageError for a what-if that changes nothing that a chosen scheduler uses."""
    counting = [name for name in chosen if not places_on_nodes(SCHEDULERS[name])]
    for name, _ in wanted:
        if counting and needs_cluster(name):
            raise UsageError(
                f"what-if {name}: --scheduler {counting[0]} counts processors, without nodes, partitions and "
                "priorities: give --scheduler slurm and --machine FILE or --live"
            )


def _playable(case: WhatIfCase, change: WhatIfChange, chosen: Sequence[str]) -> WhatIfChange:
    """Return a change without the jobs that the changed nodes cannot run, with their count by reason."""
    cluster = change.cluster or case.cluster
    trace, reasons = playable(change.table or case.table, change.trace, chosen, cluster)
    if len(trace) == len(change.trace):
        return change
    lost = change.trace.row[~np.isin(change.trace.row, trace.row)]
    unfit = lost if change.unfit is None else np.concatenate([change.unfit, lost])
    facts = dict(change.facts) | {f"jobs left out because each {reason}": count for reason, count in reasons.items()}
    return changed_to(change, trace=trace, facts=facts, unfit=unfit)


def _named(words: str, name: str, change: WhatIfChange, scheduler: str, *, never: int) -> NamedDifference:
    facts = dict(change.facts) | ({"jobs that never start": never} if never else {})
    title = WHATIFS[name].TITLE
    return NamedDifference(scheduler, words, scheduler, title, facts, change.notes, change.unfit, change.wrapped)


def _grown(
    document: SimulationDocument, found: Sequence[Difference], runs: Mapping[str, Run], given: Mapping[str, Played]
) -> Counterfactual:
    return Counterfactual(replace(document, differences=list(found), series=series_of(runs)), dict(runs), dict(given))


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


def with_proposal(document: SimulationDocument) -> SimulationDocument:
    """Return the document with its proposal: none where no change's 95 % interval is below 0.

    Another scheduler is no change of a site's settings, so only what-ifs of the first scheduler count.
    """
    first = next(iter(document.schedulers))
    changes = [one for one in document.differences if one.base == one.scheduler == first]
    sure = [(one, one.figures[_FIGURE]) for one in changes if _is_sure(one.figures.get(_FIGURE))]
    if not sure:
        return document
    best, delta = min(sure, key=lambda pair: pair[1].difference)
    return replace(document, proposal=_proposal(best, delta, len(changes)))


def _is_sure(delta: Delta | None) -> bool:
    return delta is not None and delta.low is not None and delta.high is not None and delta.high < 0


def _proposal(best: Difference, delta: Delta, among: int) -> Proposal:
    return Proposal(
        change=best.change,
        scheduler=best.scheduler,
        jobs=best.jobs,
        mean_wait_s=delta.difference,
        low_s=delta.low or 0.0,
        high_s=delta.high or 0.0,
        later=best.later,
        among=among,
    )
