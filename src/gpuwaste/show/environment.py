"""The templates' environment, and the pages that need no document: errors and the sign-in page.

A room's additions for its templates are in its file page_functions.py: FILTERS and GLOBALS, by their names there.
"""

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from gpuwaste.core.room_files import room_files
from gpuwaste.core.text import harmless
from gpuwaste.core.units import format_size
from gpuwaste.show import page_words as words
from gpuwaste.show.static_files import static_url

NAVIGATION: Final = (("/me", "My jobs"), ("/now", "Now"), ("/verdicts", "Verdicts"), ("/models", "Model"))
OPERATORS: Final = (
    ("/analytics", "Analytics"),
    ("/simulations", "Simulations"),
    ("/effects", "Effects"),
    ("/helpdesk", "Help desk"),
)


@dataclass(frozen=True, slots=True)
class Frame:
    """The values that the layout of each page needs: the reader, their permissions, and the current page."""

    user: str = ""
    path: str = ""
    accounts: tuple[str, ...] = ()
    session: bool = False
    """Whether the reader can sign out."""
    operator: bool = False
    """Whether the reader may see the whole system."""
    links: Mapping[str, str] = field(default_factory=dict)
    """The same view in other formats: name -> URL."""
    place: int = 0
    """The position in the event stream when the page was read; a page with live updates requests later events."""


def page(name: str, frame: Frame, **values: Any) -> str:
    """Return a page."""
    return _environment().get_template(f"{name}.html").render(frame=frame, **values)


@cache
def _environment() -> Environment:
    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        loader=FunctionLoader(_template),
        auto_reload=False,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalized,
    )
    environment.filters.update(
        gpu_hours=words.gpu_hours,
        in_gpu_hours=_whole(words.in_gpu_hours),
        share=_whole(words.share),
        duration=_whole(words.duration),
        unbroken=words.unbroken,
        utc=words.utc,
        day=words.day,
        size=_whole(format_size),
        level_name=words.level_name,
        letter=words.letter,
        cut=words.cut,
    )
    environment.globals.update(
        static=static_url,
        navigation=NAVIGATION,
        for_operators=OPERATORS,
        unknown=words.UNKNOWN,
    )
    for file in room_files("*/page_functions.py"):
        own = importlib.import_module(f"gpuwaste.{file.parent.name}.page_functions")
        environment.filters.update(own.FILTERS)
        environment.globals.update(own.GLOBALS)
    return environment


@cache
def _templates() -> Mapping[str, Path]:
    return {file.name: file for file in room_files("*/templates/*.html")}


def _template(name: str) -> str | None:
    file = _templates().get(name)
    return None if file is None else file.read_text(encoding="utf-8")


def _whole(text: Callable[..., str]) -> Callable[..., Markup]:
    """Return a filter that keeps number and unit on one line."""
    return lambda *values: words.unbroken(text(*values))


def _finalized(value: Any) -> Any:
    """Return the printed value: a text without control characters and characters that change the text direction."""
    return harmless(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def error_page(heading: str, words: str, todo: Sequence[str], frame: Frame) -> str:
    """Return the page of an error: what happened, and what to do."""
    return page("error", frame, heading=heading, words=words, todo=todo)


def sign_in_page() -> str:
    """Return the page for a reader who is not signed in."""
    return page("sign_in", Frame())
