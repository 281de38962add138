"""A difference as tables for a terminal, and the figures over seeds."""

from collections.abc import Sequence
from typing import Final

from gpuwaste.show.layout import Column, Look
from gpuwaste.show.terminal_cells import UNKNOWN, fit, percent
from gpuwaste.sim.difference_words import (
    FIGURES,
    change_rows,
    count_of,
    counts,
    difference_cells,
    effect,
    figures_of,
    interval_words,
    name_of,
    said,
    signed,
)
from gpuwaste.sim.document import Difference, GroupDelta, SeedFigure, SimulationDocument

_MOST: Final = 5  # groups of each kind; JSON has more
_SHOWN: Final = ("mean_wait_s", "p95_wait_s", "mean_bounded_slowdown", "utilization", "makespan_s")
_NAME: Final = 16


def difference_text(difference: Difference, resource: str, look: Look) -> list[str]:
    """Return the lines of one difference."""
    lines = look.heading(f"{fit(name_of(difference), 30)}: {fit(difference.title, 120)}")
    words = effect(difference, resource)
    lines += look.bullet(f"{words[:1].upper()}{words[1:]}.")
    rows = [
        [label, said(delta.base, unit), said(delta.changed, unit), *difference_cells(delta, unit)]
        for _, label, unit, delta in figures_of(difference, resource)
    ]
    lines += _table(rows, look)
    within = ""
    if difference.later_low is not None and difference.later_high is not None:
        within = f" (95 %: {percent(difference.later_low)} to {percent(difference.later_high)})"
    lines += look.bullet(
        f"Of {difference.jobs:,} jobs in both, {percent(difference.later)} start later{within} "
        f"and {percent(difference.earlier)} earlier than under {difference.base}."
    )
    if difference.facts:
        lines += look.bullet(counts(difference))
    for note in difference.notes:
        lines += look.bullet(note)
    for kind, groups in difference.groups.items():
        lines += _groups(kind, groups, len(groups) + difference.groups_left_out.get(kind, 0), look)
    return lines


def _table(rows: Sequence[Sequence[str]], look: Look) -> list[str]:
    """Return a table of figures; where it is too wide, the base is left out first: it is changed less difference."""
    if not rows:
        return []
    labels, base, changed, differs, ends = zip(*rows, strict=True)
    return look.fitted(
        [
            Column("FIGURE", labels, left=True),
            Column("BASE", base, rank=3),
            Column("CHANGED", changed, rank=1),
            Column("DIFFERENCE", differs),
            Column("95 % INTERVAL", ends, rank=2, whole=True),
        ]
    )


def _groups(kind: str, groups: list[GroupDelta], count: int, look: Look) -> list[str]:
    shown = groups if kind == "size" else sorted(groups, key=_weight)[:_MOST]
    waits = [group.mean_wait_s for group in shown]
    table = look.fitted(
        [
            Column(kind.upper(), [fit(group.name, _NAME) or "(none)" for group in shown], left=True),
            Column("JOBS", [f"{group.jobs:,}" for group in shown], rank=5),
            Column("BASE", [said(wait.base, "s") for wait in waits], rank=3),
            Column("CHANGED", [said(wait.changed, "s") for wait in waits], rank=1),
            Column("DIFFERENCE", [signed(wait.difference, "s") for wait in waits]),
            Column("95 % INTERVAL", [interval_words(wait, "s") for wait in waits], rank=2),
            Column("P95", [signed(group.p95_wait_s.difference, "s") for group in shown], rank=4, whole=True),
        ]
    )
    lines = [
        "",
        f"  Mean wait by {kind}; P95: difference of the 95th percentile of the wait"
        if "P95" in table[0]
        else f"  Mean wait by {kind}",
        *table,
    ]
    return lines if len(shown) == count else [*lines, f"  {count - len(shown):,} more by {kind}; --json lists more"]


def _weight(group: GroupDelta) -> float:
    return -abs(group.mean_wait_s.difference) * group.jobs


def seeds_text(document: SimulationDocument, look: Look) -> list[str]:
    """Return the lines about seeds; none without them, and none where nothing is random, which is a note."""
    seeds = document.seeds
    if seeds is None or not seeds.runs:
        return []
    lines = look.heading(f"Over {count_of(seeds)}")
    found = [
        (name, *FIGURES[figure], value)
        for name in document.schedulers
        for figure, value in seeds.runs.get(name, {}).items()
        if figure in _SHOWN
    ]
    lines += look.fitted(
        [
            Column("SCHEDULER", [fit(name, _NAME) for name, *_ in found], left=True),
            Column("FIGURE", [label for _, label, *_ in found], left=True),
            Column("MEAN", [said(value.mean, unit) for *_, unit, value in found]),
            Column("95 % INTERVAL", [_ends(value, unit) for *_, unit, value in found], rank=1),
            Column("DEVIATION", [_deviation(value, unit) for *_, unit, value in found], rank=2, whole=True),
        ]
    )
    for difference in document.differences:
        lines += change_text(difference, document.resource, look, count_of(seeds))
    return lines


def change_text(difference: Difference, resource: str, look: Look, seeds: str = "the same seeds") -> list[str]:
    """Return the lines of one difference over seeds; none without."""
    if not difference.over_seeds:
        return []
    rows = list(change_rows(difference, resource))
    return ["", f"  {fit(name_of(difference), 50)}, over {seeds}", *_table(rows, look)]


def _ends(found: SeedFigure, unit: str) -> str:
    if found.low is None or found.high is None:
        return UNKNOWN
    return f"{said(max(0.0, found.low), unit)} to {said(found.high, unit)}"


def _deviation(found: SeedFigure, unit: str) -> str:
    return UNKNOWN if found.deviation is None else said(found.deviation, unit)
