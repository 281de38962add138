"""The environment of templates: everything is escaped, and nothing undefined is printed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from gpuwaste.core.text import harmless


@dataclass(frozen=True, slots=True)
class Frame:
    """What the layout of each page needs."""

    path: str = ""
    links: Mapping[str, str] = field(default_factory=dict)


def page(name: str, frame: Frame, **values: Any) -> str:
    """Return a page."""
    return _environment().get_template(f"{name}.html").render(frame=frame, **values)


@cache
def _environment() -> Environment:
    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        loader=PackageLoader("gpuwaste.web"),
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalized,
    )
    environment.globals.update(static="/static/{}".format)
    return environment


def _finalized(value: Any) -> Any:
    return harmless(value) if isinstance(value, str) and not isinstance(value, Markup) else value
