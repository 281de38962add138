"""Two windows or two systems side by side: what changed, and whether it is more than the days vary by themselves."""

from typing import Final

from msgspec.structs import replace

from gpuwaste.core.bootstrap import difference
from gpuwaste.show.view_document import Change, ComparisonDocument, Fact
from gpuwaste.show.view_facts import value_text
from gpuwaste.views.narrative import narrate_changes
from gpuwaste.views.one_scale import one_scale
from gpuwaste.views.view import Viewed

_BESIDE: Final = "unknown"
"""Facts of what no agent told: they say how far to trust the others, and lead no list of what changed."""
METHOD: Final = (
    "A change is more than noise where 0 lies outside the 95 % interval of the difference, by a bootstrap over days "
    "of each side; many changes at once make one in twenty such a change by chance."
)


def compare(before: Viewed, after: Viewed) -> ComparisonDocument:
    """Return the changes of the facts that both sides know."""
    first = {fact.id: fact for fact in before.document.facts}
    named = {fact.id.partition("_")[0] for fact in (*before.document.facts, *after.document.facts) if not fact.unit}
    pairs = [(first[fact.id], fact) for fact in after.document.facts if fact.id in first and _comparable(fact, named)]
    changes = [change for pair in pairs if (change := _change(*pair, before, after)) is not None]
    changes.sort(
        key=lambda c: (not c.beyond_noise, c.beyond_noise is None, c.id.startswith(_BESIDE), -_weight(c), c.id)
    )
    charts = one_scale(before.document.charts, after.document.charts)
    return ComparisonDocument(
        view=after.document.view,
        title=after.document.title,
        before=replace(before.document, charts=charts[0]),
        after=replace(after.document, charts=charts[1]),
        changes=changes,
        narrative=narrate_changes(changes),
        notes=[METHOD],
    )


def _comparable(fact: Fact, named: set[str]) -> bool:
    """Tell whether a fact is of the same thing on both sides: what is said of top_user may be of two users."""
    return bool(fact.unit) and fact.id.partition("_")[0] not in named


def _change(before: Fact, after: Fact, first: Viewed, second: Viewed) -> Change | None:
    if not isinstance(before.value, int | float) or not isinstance(after.value, int | float):
        return None
    ends = None
    if after.id in first.samples and after.id in second.samples:
        ends = difference(first.samples[after.id], second.samples[after.id])
    return Change(
        id=after.id,
        means=after.means,
        unit=after.unit,
        before=before.value,
        after=after.value,
        before_text=before.text,
        after_text=after.text,
        difference=after.value - before.value,
        text=_text(before.value, after.value, after.unit),
        low=None if ends is None else ends[0],
        high=None if ends is None else ends[1],
        beyond_noise=None if ends is None else not ends[0] <= 0 <= ends[1],
    )


def _text(before: float, after: float, unit: str) -> str:
    if unit == "share":
        return f"{(after - before) * 100:+.1f} points"
    if not before:
        return f"+{value_text(after, unit)}" if after else "no difference"
    return f"{(after - before) / abs(before) * 100:+.0f} %"


def _weight(change: Change) -> float:
    """Return how large a change is, 0 to 1, whatever its unit."""
    whole = abs(change.before) + abs(change.after)
    return abs(change.difference) / whole if whole else 0.0
