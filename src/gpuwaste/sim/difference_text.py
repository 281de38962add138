"""Text of a difference: the figures of the base and the change, by user, account, partition and size."""

from typing import Final

from gpuwaste.show.cells import fit, percent, short
from gpuwaste.show.layout import Look, bullet
from gpuwaste.sim.difference_words import counts, figures_of, interval_words, name_of, said, sentence, signed
from gpuwaste.sim.document import Difference, GroupDelta

_HEADERS: Final = ("FIGURE", "BASE", "CHANGED", "DIFFERENCE", "95 % INTERVAL")
_OF_GROUPS: Final = ("JOBS", "BASE", "CHANGED", "DIFFERENCE", "95 % INTERVAL", "P95")
_MOST: Final = 5  # groups of each kind; JSON has more


def difference_text(difference: Difference, resource: str, look: Look) -> list[str]:
    """Return the lines of one difference."""
    lines = look.heading(fit(name_of(difference), 78))
    lines += bullet(sentence(difference, resource))
    lines += bullet(f"{name_of(difference)}: {difference.title}.")
    rows = []
    for _, words, unit, delta in figures_of(difference, resource):
        ends = interval_words(delta, unit)
        rows.append([words, said(delta.base, unit), said(delta.changed, unit), signed(delta.difference, unit), ends])
    lines += look.table(_HEADERS, rows, frozenset({0}))
    within = ""
    if difference.later_low is not None and difference.later_high is not None:
        within = f" (95 %: {percent(difference.later_low)} to {percent(difference.later_high)})"
    lines += bullet(
        f"Of {difference.jobs} jobs in both, {percent(difference.later)} start later{within} "
        f"and {percent(difference.earlier)} earlier than under {difference.base}."
    )
    if difference.facts:
        lines += bullet(counts(difference))
    for note in difference.notes:
        lines += bullet(note)
    for kind, groups in difference.groups.items():
        lines += _groups(kind, groups, len(groups) + difference.groups_left_out.get(kind, 0), look)
    return lines


def _groups(kind: str, groups: list[GroupDelta], count: int, look: Look) -> list[str]:
    shown = groups if kind == "size" else sorted(groups, key=_weight)[:_MOST]
    rows = [
        [
            fit(group.name, 16) or "(none)",
            f"{group.jobs}",
            short(group.mean_wait_s.base),
            short(group.mean_wait_s.changed),
            signed(group.mean_wait_s.difference, "s"),
            interval_words(group.mean_wait_s, "s"),
            signed(group.p95_wait_s.difference, "s"),
        ]
        for group in shown
    ]
    lines = ["", *look.table((kind.upper(), *_OF_GROUPS), rows, frozenset({0}))]
    return lines if len(shown) == count else [*lines, f"  {count - len(shown)} more by {kind}; --json lists more"]


def _weight(group: GroupDelta) -> float:
    return -abs(group.mean_wait_s.difference) * group.jobs
