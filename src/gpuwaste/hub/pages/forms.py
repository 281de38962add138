"""The forms of a view: a page, or with .json or .csv at the end of its path the same data for programs."""

from collections.abc import Callable
from typing import Final

from fastapi import Response

from gpuwaste.core.fields import Document
from gpuwaste.core.refusal import not_found
from gpuwaste.hub.pages.answers import html, plain
from gpuwaste.show.machine import to_csv, to_json

_FORMS: Final = (".json", ".csv")


def split_form(name: str) -> tuple[str, str]:
    """Return a name without the form at its end, and the form, "" for a page."""
    for form in _FORMS:
        if name.endswith(form):
            return name.removesuffix(form), form
    return name, ""


def in_form(form: str, page: Callable[[], str], document: Callable[[], Document]) -> Response:
    """Answer in a form. Raises Refusal 404 for another one."""
    if form == ".json":
        return plain(to_json(document().to_json()), "application/json")
    if form == ".csv":
        return plain(to_csv(document()), "text/csv; charset=utf-8")
    if form:
        raise not_found()
    return html(page())
