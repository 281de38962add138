"""Numbers and times for pages: GPU-hours, shares, durations, UTC times, levels."""

import re
from datetime import UTC, datetime
from typing import Final

from markupsafe import Markup, escape

from gpuwaste.core.text import harmless
from gpuwaste.core.units import HOUR_S, QUANTITY, say_duration, say_hours, say_percent

UNKNOWN: Final = "unknown"
LEVELS: Final = ("high", "moderate", "low", "idle")
_LETTERS: Final = {"high": "H", "moderate": "M", "low": "L", "idle": "I", "unknown": "?", "suspended": "S"}
_ESCAPED: Final = re.compile(rf"(?:&[lg]t;)?(?:{QUANTITY.pattern})")  # <1 % is one word, also where it is a flex item
_LAST_S: Final = 253_402_300_799  # the end of the year 9999


def gpu_hours(seconds: float | None) -> str:
    """Print GPU-seconds as GPU-hours, for a column that names the unit."""
    return UNKNOWN if seconds is None else say_hours(seconds / HOUR_S)


def in_gpu_hours(seconds: float) -> str:
    """Print GPU-seconds as GPU-hours with their unit."""
    return f"{gpu_hours(seconds)} GPU-hours"


def unbroken(text: str) -> Markup:
    """Return a text for a page without line breaks between a number and its unit."""
    return Markup(_ESCAPED.sub(r'<span class="nowrap">\g<0></span>', str(escape(harmless(text)))))  # noqa: S704 escaped


def share(part: float | None, whole: float = 1.0) -> str:
    """Print a part of a whole as a percentage without decimals; a value above 0 is never 0 %."""
    return UNKNOWN if part is None or not whole else say_percent(part / whole)


def duration(seconds: float | None) -> str:
    """Print a duration by its two largest units: 45 s, 2 h 14 min, 3 d 4 h."""
    return UNKNOWN if seconds is None else say_duration(seconds)


def utc(seconds: float | None) -> Markup | str:
    """Return a `time` element in UTC, which gpuwaste.js shows in the reader's zone."""
    if seconds is None or not 0 <= seconds <= _LAST_S:
        return UNKNOWN
    at = datetime.fromtimestamp(int(seconds), UTC)
    long, short = at.strftime("%Y-%m-%d %H:%M:%S UTC"), at.strftime("%Y-%m-%d %H:%M UTC")
    return Markup('<time datetime="{}" title="{}">{}</time>').format(at.strftime("%Y-%m-%dT%H:%M:%SZ"), long, short)


def day(seconds: float) -> str:
    """Print the UTC day of a time."""
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%d")


def date_words(seconds: float, *, year: bool = True) -> str:
    """Print a UTC day as in a sentence: 22 November 2026."""
    at = datetime.fromtimestamp(min(int(seconds), _LAST_S), UTC)
    return f"{at.day} {at:%B %Y}" if year else f"{at.day} {at:%B}"


def level_name(level: str) -> str:
    """Return the name of a device's level on pages: a mean of 0 is idle."""
    return "idle" if level == "none" else level


def letter(level: str) -> str:
    """Return the letter of a level."""
    return _LETTERS.get(level, "?")


def cut(text: str, most: int = 60) -> str:
    """Return a text of at most `most` characters."""
    return text if len(text) <= most else text[: most - 1] + "…"
