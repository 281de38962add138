"""Units as Slurm and users write them: durations like 1-02:03:04, sizes in powers of 1024."""

import re
from typing import TYPE_CHECKING, Final

from gpuwaste.core.errors import ParseError

if TYPE_CHECKING:
    from datetime import datetime

MINUTE_S: Final = 60
HOUR_S: Final = 3600
DAY_S: Final = 86400
WEEK_S: Final = 7 * DAY_S
_DURATION = re.compile(r"(?:(\d{1,6})-)?(\d{1,6})(?::(\d{1,2}))?(?::(\d{1,2}))?(?:\.\d+)?")
_SIZE = re.compile(r"(\d{1,20}(?:\.\d+)?)([KMGTPE]?)(?:i?B)?", re.IGNORECASE)
_POWERS: Final = "KMGTPE"
_WEEK_DAYS: Final = 7
_AN_HOUR: Final = 0.995  # rounds to 1.00 from here on
_UNITS: Final = "%|s|min|h|d|days?|[CG]PU-(?:hours|minutes)|[KMGTP]?i?B|W|[CG]PUs?|nodes?|jobs?|steps?|users?|points"
_PART: Final = rf"(?<![\d,.-])-?\d[\d,.-]* (?:{_UNITS})(?!\w)"
J_PER_KWH: Final = 3_600_000.0
QUANTITY: Final = re.compile(rf"{_PART}(?: {_PART})?|[CG]PU-(?:hours|minutes)")
"""A number with its unit (48 %, 2 h 14 min), and a unit with a hyphen: no line breaks inside one."""


def parse_duration_s(text: str) -> int | None:
    """Read a Slurm duration (slurm.conf(5): M, M:S, H:M:S, D-H, D-H:M, D-H:M:S) as seconds.

    None means UNLIMITED, Partition_Limit or another text for "no value". Raises ParseError.
    """
    text = text.strip()
    if text.upper() in {"UNLIMITED", "INFINITE", "PARTITION_LIMIT", "NONE", "N/A", "INVALID", ""}:
        return None
    match = _DURATION.fullmatch(text)
    if not match:
        raise ParseError(f"duration {text[:40]!r}: expected D-HH:MM:SS, HH:MM:SS, MM:SS or minutes")
    days, a, b, c = (int(g) if g is not None else None for g in match.groups())
    first = a or 0
    if days is not None:
        return days * DAY_S + first * HOUR_S + (b or 0) * MINUTE_S + (c or 0)
    if c is not None:
        return first * HOUR_S + (b or 0) * MINUTE_S + c
    return first * MINUTE_S + (b or 0)


def format_duration(seconds: float) -> str:
    """Print seconds as SchedMD does: HH:MM:SS, with D- in front from a day on."""
    total = round(seconds)
    days, rest = divmod(total, DAY_S)
    clock = f"{rest // HOUR_S:02d}:{rest % HOUR_S // MINUTE_S:02d}:{rest % MINUTE_S:02d}"
    return f"{days}-{clock}" if days else clock


def say_duration(seconds: float) -> str:
    """Print a duration with its unit: 45 s, 20 min, 3.5 h, 4 days."""
    for unit_s, text, upto in ((1, "s", 2 * MINUTE_S), (MINUTE_S, "min", 2 * HOUR_S), (HOUR_S, "h", 3 * DAY_S)):
        if seconds < upto:
            return f"{seconds / unit_s:.{1 if unit_s == HOUR_S else 0}f}".removesuffix(".0") + f" {text}"
    return f"{seconds / DAY_S:.1f}".removesuffix(".0") + " days"


def instant_words(then: "datetime", now: "datetime") -> str:
    """Return an instant as Slurm's relative times write it: 14:30 today, `Tue 14:30` within a week, else `3 Dec`."""
    days = (then.date() - now.date()).days
    if days == 0:
        return then.strftime("%H:%M")
    return then.strftime("%a %H:%M") if 0 < days < _WEEK_DAYS else f"{then.day} {then:%b}"


def say_number(value: float, decimals: int) -> str:
    """Print a number with its decimals; one above zero is never printed as 0."""
    least = 10.0**-decimals
    return f"<{least:g}" if 0 < value < least / 2 else f"{value:,.{decimals}f}"


def say_hours(hours: float) -> str:
    """Print GPU-hours or CPU-hours with one decimal, below an hour with two, without a last 0: shares agree."""
    if not hours:
        return "0"
    return say_number(hours, 2).removesuffix("0") if hours < _AN_HOUR else say_number(hours, 1)


def parse_size_b(text: str, default_unit: str = "") -> int:
    """Read a size with an optional 1024-based suffix (K, M, G, T, P, E) as bytes; `default_unit` without one.

    Raises ParseError.
    """
    match = _SIZE.fullmatch(text.strip())
    if not match:
        raise ParseError(f"size {text[:40]!r}: expected a number with K, M, G, T, P or E")
    unit = (match[2] or default_unit).upper()
    power = _POWERS.index(unit) + 1 if unit else 0
    return round(float(match[1]) * float(1 << (10 * power)))


def format_size(size_b: float) -> str:
    """Print bytes with the largest 1024-based unit that leaves at least 1, one decimal."""
    value = float(size_b)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if value < 1024:  # noqa: PLR2004 the base
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} PiB"
