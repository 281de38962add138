"""Rankings: of views by their finding, and of groups: the "most" or "least" in a sentence is a row that is shown.

A view ranks its groups once. Its chart draws the ranking's first rows and its sentence names the first of them, so the
two cannot differ. SUPERLATIVES of a view define where the row of each is shown.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, Literal, TypeVar

from gpuwaste.show.view_document import ComparisonDocument, Fact, ViewDocument, ViewFacts

SHOWN: Final = 20
"""Rows of a chart."""
_NAMED: Final = 2
_Group = TypeVar("_Group")
_Document = TypeVar("_Document", ViewDocument, ComparisonDocument, ViewDocument | ComparisonDocument)


@dataclass(frozen=True, slots=True)
class LostShare:
    """The share that says how large a view's finding is, and what it is a share of: GPU-hours or jobs that were lost.

    `rest`: what was lost is the rest of the share, such as requested time that was not used.
    """

    share: str
    of: Literal["GPU-hours", "jobs"]
    rest: bool = False


OVERVIEW: Final = 4.0
"""The weight of the view before all others: where the GPU-hours went. A loss of everything has 3."""
_LOST: Final = {"GPU-hours": 2.0, "jobs": 1.0}
"""Lost GPU-hours come before jobs that fail or wait, and these before views that only describe."""


def weight(finding: LostShare | None, facts: Iterable[Fact]) -> float:
    """Return the size of a view's finding: the share that is lost, above that of a less serious loss; 0 for none."""
    if finding is None:
        return 0.0
    share = next((fact.value for fact in facts if fact.id == finding.share), None)
    if not isinstance(share, int | float):
        return 0.0
    lost = 1 - share if finding.rest else share
    return _LOST[finding.of] + lost if lost > 0 else 0.0


def by_finding(found: Iterable[_Document]) -> list[_Document]:
    """Return views with the largest finding first and those without data last; comparisons by their largest change."""
    return sorted(found, key=_place)


def _place(document: ViewDocument | ComparisonDocument) -> tuple[bool, bool, float, str]:
    if isinstance(document, ViewDocument):
        return document.weight is None, False, -(document.weight or 0.0), document.view
    certain = any(change.beyond_noise for change in document.changes)
    without_data = document.before.weight is None and document.after.weight is None
    return without_data, not certain, -(document.after.weight or 0.0), document.view


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
