"""The dashboard of views: where the GPU-hours went, then each view with its finding and a small chart."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, tzinfo
from typing import Final

from markupsafe import Markup
from msgspec.structs import replace

from gpuwaste.show.chart import Bars, Bins, Chart, Layer
from gpuwaste.show.charts.draw import NARROW, chart_svg
from gpuwaste.show.page_words import cut
from gpuwaste.show.view_document import ComparisonDocument, ViewDocument, first_sentence
from gpuwaste.show.view_page import DrawnChart, drawn, window_words
from gpuwaste.views.ranking import OVERVIEW, by_finding

_ROWS: Final = 6
"""Bars of a small chart with names."""
_LONGEST: Final = 600
Document = ViewDocument | ComparisonDocument


@dataclass(frozen=True, slots=True)
class Card:
    """One view: its question, its finding, its small chart, and the link to its page."""

    question: str
    sentence: str
    chart: Markup
    link: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Dashboard:
    """The input of the dashboard's template; `picture` is the chart of where the GPU-hours went, "" for none."""

    headline: str
    details: Sequence[str]
    window: str
    picture: DrawnChart | None
    picture_link: str
    cards: Sequence[Card]
    folded: Sequence[Card]
    """Views without data, with the reason instead of a finding."""


def dashboard_of(documents: Sequence[Document], link: Callable[[str], str], zone: tzinfo = UTC) -> Dashboard:
    """Return the dashboard of some views, the largest finding first; `link` returns the link to a view's page."""
    ordered = by_finding(documents)
    cards = [(document, _card(document, link, zone)) for document in ordered]
    overview, details, picture = "", list[str](), None
    first = ordered[0] if ordered else None
    if isinstance(first, ViewDocument) and (first.weight or 0.0) >= OVERVIEW and first.charts:
        overview, *details = (cut(sentence, _LONGEST) for sentence in first.narrative)
        picture = drawn(first.charts[0], "overview", zone)
        cards = cards[1:]
    shown = [card for document, card in cards if _has_data(document)]
    best = shown[0].sentence if shown else "No data in this window."
    return Dashboard(
        headline=overview or best,
        details=details,
        window=" ".join(window_words(side, zone) for side in _sides(first)),
        picture=picture,
        picture_link=link(first.view) if first else "",
        cards=sorted(shown, key=lambda card: not card.chart),
        folded=[card for document, card in cards if not _has_data(document)],
    )


def small(chart: Chart) -> Chart:
    """Return a chart with little enough in it to be read in a third of a page: few names, one grid."""
    match chart:
        case Bars() if chart.x.scale == "category":
            series = [replace(one, y=one.y[:_ROWS]) for one in chart.series]
            axis = replace(chart.x, categories=chart.x.categories[:_ROWS])
            return replace(chart, x=axis, at=chart.at[:_ROWS], series=series)
        case Bins() if len(chart.layers) > 1:
            counts = [sum(cells) for cells in zip(*(layer.counts for layer in chart.layers), strict=True)]
            return replace(chart, layers=[Layer(name="jobs", role="main", counts=counts)])
    return chart


def _card(document: Document, link: Callable[[str], str], zone: tzinfo) -> Card:
    if isinstance(document, ComparisonDocument):
        question, sentence = f"{document.title}: what changed?", next(iter(document.narrative), "No change.")
    else:
        question, sentence = document.question, first_sentence(document)
    charts = _sides(document)[-1].charts
    key = f"small-{document.view}"
    svg = chart_svg(small(charts[0]), NARROW, key, zone) if charts and _has_data(document) else ""
    return Card(cut(question, _LONGEST), cut(sentence, _LONGEST), Markup(svg), link(document.view))  # noqa: S704 escaped


def _sides(document: Document | None) -> list[ViewDocument]:
    if document is None:
        return []
    return [document] if isinstance(document, ViewDocument) else [document.before, document.after]


def _has_data(document: Document) -> bool:
    return any(side.weight is not None for side in _sides(document))
