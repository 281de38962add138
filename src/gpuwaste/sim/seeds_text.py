"""Figures over seeds as text and as rows of a view: means, and intervals over the seeds."""

from collections.abc import Iterator, Sequence
from typing import Final

from gpuwaste.show.cells import UNKNOWN, fit
from gpuwaste.show.layout import Look
from gpuwaste.sim.difference_words import FIGURES, HOURS, interval_words, name_of, said, signed
from gpuwaste.sim.document import Delta, Difference, SeedFigure, Seeds, SimulationDocument

_SHOWN: Final = ("mean_wait_s", "p95_wait_s", "mean_bounded_slowdown", "utilization", "makespan_s")
_OF_RUNS: Final = ("SCHEDULER", "FIGURE", "MEAN", "95 % INTERVAL", "DEVIATION")
_OF_CHANGES: Final = ("FIGURE", "BASE", "CHANGED", "DIFFERENCE", "95 % INTERVAL")
_NOTHING_RANDOM: Final = "Nothing in this simulation is random: other seeds change nothing, so it was simulated once."
_NAME: Final = 16


def seeds_text(document: SimulationDocument, look: Look) -> list[str]:
    """Return the lines about seeds; none without them, and none where nothing is random, which is a note."""
    seeds = document.seeds
    if seeds is None or not seeds.runs:
        return []
    lines = look.heading(f"Over {_count(seeds)}")
    rows = []
    for name in document.schedulers:
        for figure, found in seeds.runs.get(name, {}).items():
            if figure in _SHOWN:
                label, unit = FIGURES[figure]
                rows.append(
                    [fit(name, _NAME), label, said(found.mean, unit), _ends(found, unit), _deviation(found, unit)]
                )
    lines += look.table(_OF_RUNS, rows, frozenset({0, 1}))
    for difference in document.differences:
        lines += change_text(difference, document.resource, look, _count(seeds))
    return lines


def change_text(difference: Difference, resource: str, look: Look, seeds: str = "the same seeds") -> list[str]:
    """Return the lines of one difference over seeds; none without."""
    if not difference.over_seeds:
        return []
    rows = list(_changes(difference, resource))
    return ["", f"  {fit(name_of(difference), 50)}, over {seeds}", *look.table(_OF_CHANGES, rows, frozenset({0}))]


def seeds_notes(document: SimulationDocument) -> Iterator[str]:
    """Yield what a reader must know of the seeds."""
    seeds = document.seeds
    if seeds is None:
        return
    if not seeds.drawn:
        yield _NOTHING_RANDOM
    elif seeds.runs:
        yield (
            f"Seeds draw {' and '.join(seeds.drawn)}. Intervals over {_count(seeds)} (Student): of the mean, "
            "and of the mean difference between runs of one seed. All other figures are of the first seed."
        )


def seed_rows(difference: Difference, seeds: Seeds, resource: str) -> Iterator[Sequence[str]]:
    """Yield the rows of a view: change, scheduler, of what, figure, base, changed, difference, interval."""
    for cells in _changes(difference, resource):
        yield (difference.change, difference.scheduler, f"mean of {_count(seeds)}", *cells)


def _count(seeds: Seeds) -> str:
    return f"{len(seeds.seeds)} seeds"


def _changes(difference: Difference, resource: str) -> Iterator[list[str]]:
    for figure, delta in difference.over_seeds.items():
        label, unit = FIGURES.get(figure, (figure, ""))
        words = f"{HOURS[resource]} held" if figure == "held_h" else label
        yield [words, said(delta.base, unit), said(delta.changed, unit), *_difference(delta, unit)]


def _difference(delta: Delta, unit: str) -> list[str]:
    return [signed(delta.difference, unit), interval_words(delta, unit)]


def _ends(found: SeedFigure, unit: str) -> str:
    if found.low is None or found.high is None:
        return UNKNOWN
    return f"{said(max(0.0, found.low), unit)} to {said(found.high, unit)}"


def _deviation(found: SeedFigure, unit: str) -> str:
    return UNKNOWN if found.deviation is None else said(found.deviation, unit)
