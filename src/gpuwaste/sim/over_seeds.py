"""Figures over seeds: the mean of each run's figures, and of differences, which are paired seed by seed."""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from gpuwaste.sim.document import Delta, Difference, SeedFigure, Seeds, SimulationDocument
from gpuwaste.sim.spread import spread

DIGITS: Final = 6
FIGURES: Final = ("mean_wait_s", "p50_wait_s", "p95_wait_s", "mean_bounded_slowdown", "utilization", "makespan_s")
Runs = Mapping[str, Mapping[str, SeedFigure]]


def with_seeds(documents: Sequence[SimulationDocument], drawn: Sequence[str]) -> SimulationDocument:
    """Return the first of the documents, one for each seed and at least one, with the figures over all of them."""
    first, seeds = documents[0], Seeds(seeds=list(range(len(documents))), drawn=list(drawn))
    if len(documents) == 1:
        return replace(first, seeds=seeds)
    by_name: dict[str, list[Difference]] = {}
    for document in documents:
        for one in document.differences:
            by_name.setdefault(_run(one), []).append(one)
    differences = [replace(one, over_seeds=_deltas(by_name[_run(one)])) for one in first.differences]
    runs = {
        name: {
            figure: _figure([float(getattr(each.schedulers[name], figure)) for each in documents]) for figure in FIGURES
        }
        for name in first.schedulers
    }
    for name, found in by_name.items():
        if name not in runs:
            runs[name] = {
                figure: _figure([one.figures[figure].changed for one in found])
                for figure in FIGURES
                if all(figure in one.figures for one in found)
            }
    return replace(first, seeds=replace(seeds, runs=runs), differences=differences)


def paired(before: Seeds, after: Seeds, first: str, second: str) -> dict[str, Delta]:
    """Return the differences of two runs of two simulations over their seeds; none where these are not the same."""
    left, right = before.runs.get(first, {}), after.runs.get(second, {})
    if before.seeds != after.seeds:
        return {}
    return {
        figure: _delta(left[figure].values, right[figure].values)
        for figure in left.keys() & right.keys()
        if len(left[figure].values) == len(right[figure].values)
    }


def _run(difference: Difference) -> str:
    """Return the name of the run that a difference sets beside its base, as Counterfactual.runs has it."""
    same = difference.change == difference.scheduler
    return difference.change if same else f"{difference.change}:{difference.scheduler}"


def _deltas(found: Sequence[Difference]) -> dict[str, Delta]:
    return {
        figure: _delta([one.figures[figure].base for one in found], [one.figures[figure].changed for one in found])
        for figure in found[0].figures
        if all(figure in one.figures for one in found)
    }


def _delta(before: Sequence[float], after: Sequence[float]) -> Delta:
    """Return the means and the interval of the mean difference of pairs [n >= 1]."""
    base, changed = _figure(before), _figure(after)
    ends = _figure([right - left for left, right in zip(before, after, strict=True)])
    return Delta(base=base.mean, changed=changed.mean, difference=ends.mean, low=ends.low, high=ends.high)


def _figure(values: Sequence[float]) -> SeedFigure:
    found = spread(values, DIGITS)
    if found is None:
        raise ValueError("no seed")
    kept = [round(value, DIGITS) for value in values]
    return SeedFigure(mean=found.mean, low=found.low, high=found.high, deviation=found.deviation, values=kept)
