"""/analytics/VIEW of two windows or two systems: what changed, and their charts side by side on one scale."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, tzinfo
from itertools import zip_longest
from typing import Final

from gpuwaste.analytics.chart import Chart
from gpuwaste.analytics.document import Change, ComparisonDocument, ViewDocument
from gpuwaste.web.environment import Frame, page
from gpuwaste.web.pages.view import MOST_CHARTS, DrawnChart, ViewForm, cell, drawn, window_words
from gpuwaste.web.words import cut

_HALF: Final = 520
"""Pixels of a chart beside another one."""
_MOST_CHANGES: Final = 200
_LONGEST: Final = 60
_LONGEST_TEXT: Final = 600
_SAID: Final = {True: "yes", False: "no", None: "not known"}


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two: what it is called, its window in words, and the link to its own page."""

    name: str
    window: str
    link: str
    charts: int


@dataclass(frozen=True, slots=True)
class ChangeWords:
    """A change as it is printed."""

    means: str
    before: str
    after: str
    change: str
    interval: str
    beyond: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonBody:
    """What the template of a comparison prints; everything in it is bounded."""

    name: str
    title: str
    sentence: str
    narrative: Sequence[str]
    sides: tuple[Side, Side]
    changes: Sequence[ChangeWords]
    pairs: Sequence[tuple[DrawnChart | None, DrawnChart | None]]
    notes: Sequence[str]


def comparison_page(
    document: ComparisonDocument, frame: Frame, links: tuple[str, str], form: ViewForm, zone: tzinfo = UTC
) -> str:
    """Return the page of a comparison; `links` lead to the page of each side."""
    return page("comparison", frame, view=comparison_body(document, links, zone), form=form)


def comparison_body(document: ComparisonDocument, links: tuple[str, str], zone: tzinfo) -> ComparisonBody:
    """Return what a page about two sides prints, its times in `zone`."""
    sentences = [cut(sentence, _LONGEST_TEXT) for sentence in document.narrative]
    first, second = (
        Side(name, window_words(side, zone), link, len(side.charts))
        for name, side, link in zip(_names(document), (document.before, document.after), links, strict=True)
    )
    return ComparisonBody(
        name=document.view,
        title=cut(document.title, _LONGEST_TEXT),
        sentence=sentences[0] if sentences else "No change.",
        narrative=sentences[1:],
        sides=(first, second),
        changes=[_change(change, zone) for change in document.changes[:_MOST_CHANGES]],
        pairs=_pairs(document, zone),
        notes=[cut(note, _LONGEST_TEXT) for note in dict.fromkeys([*document.notes, *document.after.notes])],
    )


def _names(document: ComparisonDocument) -> tuple[str, str]:
    """Return what the sides are called: by their clusters where these differ, else before and after."""
    first, second = (cut(", ".join(side.clusters), _LONGEST) for side in (document.before, document.after))
    return (first, second) if first and second and first != second else ("Before", "After")


def _change(change: Change, zone: tzinfo) -> ChangeWords:
    interval = ""
    if change.low is not None and change.high is not None:
        interval = " to ".join(_signed(end, change.unit, zone) for end in (change.low, change.high))
    texts = (cut(text, _LONGEST) for text in (change.before_text, change.after_text, change.text))
    return ChangeWords(cut(change.means, _LONGEST_TEXT), *texts, interval, _SAID[change.beyond_noise])


def _signed(value: float, unit: str, zone: tzinfo) -> str:
    """Return an end of the interval of a difference; shares differ by points."""
    if unit == "share":
        return f"{value * 100:+.1f} points"
    return f"{'+' if value > 0 else '-' if value < 0 else ''}{cell(abs(value), unit, zone).text}"


def _pairs(document: ComparisonDocument, zone: tzinfo) -> list[tuple[DrawnChart | None, DrawnChart | None]]:
    """Return the charts of one title beside each other, then those that only one side has."""
    before, after = _by_title(document.before), _by_title(document.after)
    both = [title for title in after if title in before]
    pairs: list[tuple[Chart | None, Chart | None]] = [(before[title], after[title]) for title in both]
    alone = ([chart for title, chart in side.items() if title not in both] for side in (before, after))
    pairs += zip_longest(*alone)
    return [
        tuple(chart and drawn(chart, f"{side}{index}", zone, _HALF) for side, chart in zip("ab", pair, strict=True))  # type: ignore[misc]
        for index, pair in enumerate(pairs)
    ]


def _by_title(document: ViewDocument) -> dict[str, Chart]:
    return {chart.title: chart for chart in document.charts[:MOST_CHARTS]}
