"""Rankings: the "most" or "least" in a sentence is the first row of a chart or a table.

A view ranks its groups once. Its chart draws the ranking's first rows and its sentence names the first of them, so the
two cannot differ. SUPERLATIVES of a view define where the row of each is shown.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, Literal, TypeVar

from gpuwaste.show.view_document import ViewFacts

SHOWN: Final = 20
"""Rows of a chart."""
_NAMED: Final = 2
_Group = TypeVar("_Group")


@dataclass(frozen=True, slots=True)
class Superlative:
    """A fact that names a row, the fact with that row's value, and where both are shown.

    The row has the largest value (`least`: the smallest) of a chart's bars or points, of the sums of a chart's series,
    or of a column of the table; equal rows are named together. `name` is "" for a value without a name.
    """

    name: str
    value: str
    shown: Literal["bars", "series", "table"]
    of: str
    """The chart's title, or the column of the table."""
    series: Sequence[str] = ()
    """The series that are added up; empty: all."""
    labels: Sequence[str] = ()
    """Columns of the table that name its rows."""
    scale: float = 1.0
    """The factor from the chart's values to the fact's unit."""
    least: bool = False
    share: str = ""
    """The fact with the value's share of all rows together."""


@dataclass(frozen=True, slots=True)
class Ranking(Generic[_Group]):
    """Groups with a name and a value each, in display order: the first is the superlative."""

    groups: Sequence[_Group]
    names: Sequence[str]
    values: Sequence[float]

    @property
    def first(self) -> tuple[str, float] | None:
        """The name and the value of the first: alice, alice (equal: bob). None where no group is ahead of another."""
        tied = [name for name, value in zip(self.names, self.values, strict=True) if value == self.values[0]]
        if not tied or len(tied) == len(self.names) > 1:
            return None
        equal = f" (equal: {listing(tied[1:])})" if tied[1:] else ""
        return f"{tied[0]}{equal}", self.values[0]

    def add(
        self,
        facts: ViewFacts,
        what: Superlative,
        unit: str,
        means: Sequence[str],
        *,
        some: bool = True,
        unnamed: str = "",
    ) -> None:
        """Add the first row's name, value and share, each with its meaning.

        Nothing is added where no row is ahead of the others, where the value is 0 (`some`), or where the first row is
        the one without a name, labelled `unnamed`.
        """
        found = self.first
        if found is None or (some and not found[1]) or found[0] == unnamed:
            return
        facts.add(what.name, found[0], "", means[0])
        if what.value:
            facts.add(what.value, found[1], unit, means[1])
        if what.share:
            facts.share(what.share, found[1], sum(self.values), means[2])


def ranking(found: Iterable[tuple[_Group, str, float]], *, least: bool = False) -> Ranking[_Group]:
    """Return groups with their names and values, the largest value first (`least`: the smallest), then by name."""
    ordered = sorted(found, key=lambda one: (one[2] if least else -one[2], one[1]))
    return Ranking([one[0] for one in ordered], [one[1] for one in ordered], [one[2] for one in ordered])


def listing(names: Sequence[str]) -> str:
    """Return names as text: a, a and b, a, b and 3 more."""
    if len(names) <= _NAMED:
        return " and ".join(names)
    return f"{', '.join(names[:_NAMED])} and {len(names) - _NAMED} more"
