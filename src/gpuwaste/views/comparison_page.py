"""/analytics/VIEW of two windows or two systems: the changes, and their charts side by side on one scale."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, tzinfo
from functools import partial
from typing import Final

from gpuwaste.show.chart import Chart
from gpuwaste.show.charts.draw import HALF, pair_file
from gpuwaste.show.environment import Frame, page
from gpuwaste.show.page_words import cut
from gpuwaste.show.view_document import Change, ComparisonDocument, ViewDocument
from gpuwaste.show.view_page import MOST_CHARTS, DrawnChart, ViewForm, cell, drawn, window_words

_MOST_CHANGES: Final = 200
_LONGEST: Final = 60
_LONGEST_TEXT: Final = 600
_TEST: Final = {True: "more than noise", False: "within noise", None: ""}


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two: its name, its window as text, and the link to its own page."""

    name: str
    window: str
    link: str


@dataclass(frozen=True, slots=True)
class ChangeWords:
    """A change as text; `test` says whether it is more than noise, with its interval."""

    means: str
    before: str
    after: str
    change: str
    test: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonBody:
    """The input of a comparison's template; everything in it has a limited size."""

    name: str
    title: str
    question: str
    sentence: str
    links: Sequence[tuple[str, str]]
    sides: tuple[Side, Side]
    changes: Sequence[ChangeWords]
    tested: bool
    """Whether a change could be tested; else the table has no such column."""
    same: str
    pairs: Sequence[tuple[DrawnChart | None, DrawnChart | None]]
    method: Sequence[str]
    notes: Sequence[str]


def comparison_page(
    document: ComparisonDocument, frame: Frame, links: tuple[str, str], form: ViewForm, zone: tzinfo = UTC
) -> str:
    """Return the page of a comparison; `links` lead to the page of each side."""
    return page("comparison", frame, view=comparison_body(document, links, frame.links, zone), form=form)


def comparison_body(
    document: ComparisonDocument, sides: tuple[str, str], links: Mapping[str, str], zone: tzinfo
) -> ComparisonBody:
    """Return the content of a comparison's page, with times in `zone`; `links` lead to its other formats."""
    sentence = next(iter(document.narrative), "No change.")
    same = [cut(change.means, _LONGEST_TEXT) for change in document.changes if not change.difference]
    first, second = (
        Side(name, window_words(side, zone), link)
        for name, side, link in zip(_names(document), (document.before, document.after), sides, strict=True)
    )
    return ComparisonBody(
        name=document.view,
        title=cut(document.title, _LONGEST_TEXT),
        question=f"{cut(document.title, _LONGEST_TEXT)}, compared.",
        sentence=cut(sentence if sentence != "No change." else f"{document.title}: no change.", _LONGEST_TEXT),
        links=list(links.items()),
        sides=(first, second),
        changes=[_change(change, zone) for change in document.changes[:_MOST_CHANGES] if change.difference],
        tested=any(change.beyond_noise is not None for change in document.changes),
        same="; ".join(same[:_MOST_CHANGES]),
        pairs=[
            (_half(before, f"a{index}", zone), _half(after, f"b{index}", zone))
            for index, (before, after) in enumerate(_pairs(document))
        ],
        method=[cut(note, _LONGEST_TEXT) for note in document.notes],
        notes=[cut(note, _LONGEST_TEXT) for note in document.after.notes],
    )


def _names(document: ComparisonDocument) -> tuple[str, str]:
    """Return the names of the sides: their clusters if these differ, else before and after."""
    first, second = (cut(", ".join(side.clusters), _LONGEST) for side in (document.before, document.after))
    return (first, second) if first and second and first != second else ("Before", "After")


def _change(change: Change, zone: tzinfo) -> ChangeWords:
    before, after, difference = (cut(text, _LONGEST) for text in (change.before_text, change.after_text, change.text))
    test = _TEST[change.beyond_noise]
    if change.low is not None and change.high is not None:
        test = f"{test}: {' to '.join(_signed(end, change.unit, zone) for end in (change.low, change.high))}"
    means = f"{change.means[:1].upper()}{change.means[1:]}"
    return ChangeWords(cut(means, _LONGEST_TEXT), before, after, difference, test)


def _signed(value: float, unit: str, zone: tzinfo) -> str:
    """Return an end of the interval of a difference; shares differ by points."""
    if unit == "share":
        return f"{value * 100:+.1f} points"
    return f"{'+' if value > 0 else '-' if value < 0 else ''}{cell(abs(value), unit, zone).text}"


def pair_files(document: ComparisonDocument, zone: tzinfo = UTC) -> list[Callable[[], str]]:
    """Return functions that draw each pair of charts as one SVG file, in the order of the page."""
    return [partial(pair_file, _names(document), pair, zone) for pair in _pairs(document)]


def _pairs(document: ComparisonDocument) -> list[tuple[Chart | None, Chart | None]]:
    """Return pairs of charts of one title; those that only one side has are at the end."""
    before, after = _by_title(document.before), _by_title(document.after)
    titles = sorted(dict.fromkeys([*after, *before]), key=lambda title: not (title in before and title in after))
    return [(before.get(title), after.get(title)) for title in titles]


def _half(chart: Chart | None, key: str, zone: tzinfo) -> DrawnChart | None:
    return None if chart is None else drawn(chart, key, zone, HALF)


def _by_title(document: ViewDocument) -> dict[str, Chart]:
    return {chart.title: chart for chart in document.charts[:MOST_CHARTS]}
