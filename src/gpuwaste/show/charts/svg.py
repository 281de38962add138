"""SVG elements as text, with every name escaped."""

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Final

from markupsafe import Markup, escape

from gpuwaste.core.text import harmless

NAMESPACE: Final = "http://www.w3.org/2000/svg"
LONGEST: Final = 1000
"""Most characters of a text that occurs once."""

Value = str | float
_HUGE: Final = 1e100
_TINY: Final = 1e-100


def finite(value: float | None) -> float | None:
    """Return a number that can be drawn: None for NaN and infinities, 0 for tiny numbers."""
    if value is None or not isfinite(value) or abs(value) >= _HUGE:
        return None
    return value if abs(value) > _TINY else 0.0


def shown(text: str, most: int = LONGEST) -> str:
    """Return a text in one line without control characters and direction marks, cut at `most` characters."""
    plain = harmless(" ".join(text[:most].split()))[:most]
    return plain if len(text) <= most else plain[: most - 1] + "…"


def number(value: float) -> str:
    """Return a coordinate with one decimal, in its shortest form; a value below 1 has two."""
    return f"{round(value, 2) + 0.0:g}" if 0 < value < 1 else f"{round(value, 1) + 0.0:.1f}".removesuffix(".0")


def element(name: str, attributes: Mapping[str, Value] | None = None, *children: str) -> Markup:
    """Return one element; attributes and children that are not Markup are sanitized and escaped."""
    found = "".join(f' {key}="{_attribute(value)}"' for key, value in (attributes or {}).items())
    inner = "".join(child if isinstance(child, Markup) else _escaped(child) for child in children)
    return Markup(f"<{name}{found}>{inner}</{name}>" if inner else f"<{name}{found}/>")  # noqa: S704 escaped above


def joined(parts: Sequence[Markup]) -> Markup:
    """Return elements one after the other."""
    return Markup("").join(parts)


def titled(name: str, attributes: Mapping[str, Value], title: str) -> Markup:
    """Return a mark with its tooltip."""
    return element(name, attributes, element("title", {}, title))


def group(kind: str, *children: Markup) -> Markup:
    """Return a group with a class."""
    return element("g", {"class": kind}, *children)


def pattern(key: str, kind: str) -> str:
    """Return the reference to one of the patterns of `patterns`."""
    return f"url(#{key}-{kind})"


def patterns(key: str) -> Markup:
    """Return the hatch for unknown and the dots for suspended time; ids start with the chart's key."""
    area: dict[str, Value] = {"width": 6, "height": 6, "patternUnits": "userSpaceOnUse"}
    panel = element("rect", {"width": 6, "height": 6, "class": "panel"})
    return element(
        "defs",
        {},
        element(
            "pattern", {"id": f"{key}-hatch", **area}, panel, element("path", {"d": "M-1 7L7-1", "class": "hatch"})
        ),
        element(
            "pattern",
            {"id": f"{key}-dots", **area},
            panel,
            element("circle", {"cx": 3, "cy": 3, "r": 1.2, "class": "dot"}),
        ),
    )


def _attribute(value: Value) -> str:
    return _escaped(value) if isinstance(value, str) else number(value)


def _escaped(text: str) -> str:
    """Return a text without characters that XML forbids; line breaks stay, since a title may have several lines."""
    return str(escape("\n".join(map(harmless, text.split("\n")))))
