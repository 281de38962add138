"""View: a file of `views/` with its question and its answer, and the document made from it.

A view's file has TITLE, QUESTION, `answer(asking)` and SENTENCES (views/narrative.py), SUPERLATIVES (views/ranking.py)
if a sentence has one, and FINDING if a share says how much is lost. It is found without registration; its name is that
of the file.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any, Final

from gpuwaste.core.bootstrap import BootstrapSample
from gpuwaste.core.errors import NoDataError
from gpuwaste.core.registry import ModuleRegistry
from gpuwaste.core.text import harmless
from gpuwaste.show.view_document import Cell, ViewDocument
from gpuwaste.views import catalogue as views
from gpuwaste.views.narrative import narrate
from gpuwaste.views.ranking import LostShare, Superlative, weight
from gpuwaste.views.view_query import MAX_ROWS, Answer, ViewQuery

_LONGEST_CELL: Final = 256


@dataclass(frozen=True, slots=True)
class View:
    """One view."""

    name: str
    title: str
    question: str
    sentences: Sequence[str]
    answer: Callable[[ViewQuery], Answer]
    superlatives: Sequence[Superlative] = ()
    finding: LostShare | None = None


@dataclass(frozen=True, slots=True)
class Viewed:
    """A document, and the samples for comparing its facts with another one's."""

    document: ViewDocument
    samples: dict[str, BootstrapSample]


@cache
def all_views() -> MappingProxyType[str, View]:
    """Return the views by name."""
    found = {}
    for name, module in ModuleRegistry[Any](views, "TITLE", "QUESTION", "SENTENCES", "answer").items():
        found[name] = View(
            name,
            module.TITLE,
            module.QUESTION,
            module.SENTENCES,
            module.answer,
            getattr(module, "SUPERLATIVES", ()),
            getattr(module, "FINDING", None),
        )
    return MappingProxyType(found)


def view_named(name: str) -> View:
    """Return a view. Raises NoDataError with the names of the available ones."""
    found = all_views().get(name)
    if found is None:
        raise NoDataError(f"no view {name[:40]!r}: views are {', '.join(all_views())}")
    return found


def look(view: View, asking: ViewQuery) -> Viewed:
    """Run a view's queries. Raises StoreError."""
    window = asking.window
    found = view.answer(asking)
    rows = [[_cell(cell) for cell in row] for row in found.rows[:MAX_ROWS]]
    clusters = window.clusters or [row["cluster"] for row in asking.rows("clusters")]
    sentences = [] if found.nothing else narrate(view.sentences, found.facts.found)
    reasons = [] if sentences else [found.nothing or "Nothing in this window."]
    document = ViewDocument(
        view=view.name,
        title=view.title,
        question=view.question,
        clusters=[harmless(name)[:_LONGEST_CELL] for name in clusters],
        start=window.start,
        end=window.end,
        generated=window.now,
        columns=found.columns,
        rows=rows,
        rows_left_out=found.rows_left_out + max(0, len(found.rows) - MAX_ROWS),
        charts=[] if found.nothing else found.charts,
        facts=found.facts.found,
        narrative=sentences,
        notes=[*reasons, *found.notes],
        sql="\n".join(sql for name, sql in asking.asked.items() if name != "analytics.clusters"),
        parameters={**_plain(asking), **found.parameters},
        weight=(found.weight or weight(view.finding, found.facts.found)) if sentences else None,
    )
    return Viewed(document, found.facts.samples)


def _cell(value: Cell) -> Cell:
    return harmless(value)[:_LONGEST_CELL] if isinstance(value, str) else value


def _plain(asking: ViewQuery) -> dict[str, Any]:
    return {name: value for name, value in asking.parameters().items() if value is not None}
