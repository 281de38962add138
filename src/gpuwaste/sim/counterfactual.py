"""A simulation with its what-ifs: every change is played by every scheduler, and set beside the base."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from gpuwaste.sim.difference import Named, Run, difference
from gpuwaste.sim.document import Difference, SimulationDocument
from gpuwaste.sim.series import series_of
from gpuwaste.sim.simulation import all_schedulers, played
from gpuwaste.sim.trace import Ints
from gpuwaste.sim.whatif import Case, Change, all_whatifs, changed

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Counterfactual:
    """The answer, and each simulated run by its name: the scheduler, or what-if and scheduler."""

    document: SimulationDocument
    runs: Mapping[str, Run]


def compared(
    document: SimulationDocument,
    case: Case,
    starts: Mapping[str, Ints],
    wanted: Sequence[tuple[str, str]],
    *,
    past: Ints | None = None,
    progress: Progress = lambda _: None,
) -> Iterator[Counterfactual]:
    """Yield the answer as it grows: schedulers beside the first one, then each what-if beside the same scheduler.

    `starts` are the base's, by scheduler. Raises UsageError, NoDataError.
    """
    runs = {name: Run(case.trace, start, case.processors) for name, start in starts.items()}
    first = next(iter(starts))
    found = [
        difference(case.table, runs[first], runs[name], Named(first, name, name, all_schedulers()[name].TITLE, {}))
        for name in starts
        if name != first
    ]
    yield _grown(document, found, runs)
    for name, value in wanted:
        change = changed(case, name, value)
        label = f"{name}={value}" if value else name
        for scheduler, start in played(change.trace, change.processors, tuple(starts), document.walltime, past):
            run = runs[f"{label}:{scheduler}"] = Run(change.trace, start, change.processors)
            found.append(_what_if(case, label, name, change, runs[scheduler], run, scheduler))
            progress(f"{label}:{scheduler}")
            yield _grown(document, found, runs)


def _what_if(case: Case, label: str, name: str, change: Change, base: Run, run: Run, scheduler: str) -> Difference:
    title = all_whatifs()[name].TITLE
    return difference(
        case.table, base, run, Named(scheduler, label, scheduler, title, dict(change.facts), change.notes, change.unfit)
    )


def _grown(document: SimulationDocument, found: Sequence[Difference], runs: Mapping[str, Run]) -> Counterfactual:
    return Counterfactual(replace(document, differences=list(found), series=series_of(runs)), dict(runs))
