"""Units as Slurm and users write them: 1-02:03:04 in tables, 1 h 7 min in sentences, sizes in powers of 1024.

GPU-time is printed in one unit per table or report; see GpuTimeUnit.
"""

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

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
_MINUTES_ONLY_S: Final = 10 * MINUTE_S
_MANY_HOURS: Final = 1000  # from here on without decimals
_SOME_HOURS: Final = 10  # from here on with one decimal, below with two
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
    """Print a duration for a sentence by its two largest units: 45 s, 1 min 30 s, 20 min, 2 h 14 min, 3 d 4 h.

    From ten minutes on it is rounded to minutes.
    """
    total = round(seconds)
    if total >= _MINUTES_ONLY_S:
        total = round(total / MINUTE_S) * MINUTE_S
    for unit_s, unit, next_s, next_unit in (
        (DAY_S, "d", HOUR_S, "h"),
        (HOUR_S, "h", MINUTE_S, "min"),
        (MINUTE_S, "min", 1, "s"),
    ):
        if total >= unit_s:
            rest = total % unit_s // next_s
            return f"{total // unit_s} {unit}" + (f" {rest} {next_unit}" if rest else "")
    return f"{total} s"


def instant_words(then: "datetime", now: "datetime") -> str:
    """Return an instant as Slurm's relative times write it: 14:30 today, `Tue 14:30` within a week, else `3 Dec`."""
    days = (then.date() - now.date()).days
    if days == 0:
        return then.strftime("%H:%M")
    return then.strftime("%a %H:%M") if 0 < days < _WEEK_DAYS else f"{then.day} {then:%b}"


def say_percent(ratio: float) -> str:
    """Print a ratio as whole percent: 2,933 %; <1 % for small values above 0, >99 % for values just below 1."""
    if 0 < ratio < 0.005:  # noqa: PLR2004 what would round to 0
        return "<1 %"
    if 0.995 <= ratio < 1:  # noqa: PLR2004 what would round to 100
        return ">99 %"
    return f"{100 * ratio:,.0f} %"


def say_number(value: float, decimals: int) -> str:
    """Print a number with its decimals; one above zero is never printed as 0."""
    least = 10.0**-decimals
    return f"<{least:g}" if 0 < value < least / 2 else f"{value:,.{decimals}f}"


def say_hours(hours: float) -> str:
    """Print GPU-hours or CPU-hours: 1,266,503 from a thousand on, else one decimal, below an hour two.

    A last 0 of two decimals is left out: shares agree.
    """
    if not hours:
        return "0"
    if abs(hours) >= _MANY_HOURS - 0.05:  # what would round to 1,000.0
        return say_number(hours, 0)
    return say_number(hours, 2).removesuffix("0") if abs(hours) < _AN_HOUR else say_number(hours, 1)


class GpuTimeUnit(NamedTuple):
    """The unit of all GPU-time in one table or report, and its decimals: named once, so that numbers compare."""

    name: str
    seconds: int
    decimals: int

    @classmethod
    def of(cls, amounts_s: Iterable[float | None]) -> "GpuTimeUnit":
        """Return the unit that fits the largest of some GPU-seconds: GPU-minutes only where all are below an hour."""
        largest_s = max((amount for amount in amounts_s if amount is not None), default=0.0)
        if 0 < largest_s < HOUR_S:
            return cls("GPU-minutes", MINUTE_S, 1)
        hours = largest_s / HOUR_S
        return cls("GPU-hours", HOUR_S, 0 if hours >= _MANY_HOURS else 1 if hours >= _SOME_HOURS else 2)

    def number(self, amount_s: float) -> str:
        """Print GPU-seconds without the unit; an amount above 0 is never printed as 0."""
        return say_number(amount_s / self.seconds, self.decimals) if amount_s else "0"

    def words(self, amount_s: float) -> str:
        """Print GPU-seconds with the unit."""
        return f"{self.number(amount_s)} {self.name}"

    def parts(self, amounts_s: Sequence[float], total_s: float) -> list[str]:
        """Print the parts of a total so that the printed numbers add up to the printed total."""
        step_s = self.seconds / 10**self.decimals
        printed = round(total_s / self.seconds, self.decimals)  # as format() rounds it
        shown = _rounded([amount / step_s for amount in amounts_s], round(printed * 10**self.decimals))
        cells = zip(shown, amounts_s, strict=True)
        return [self.number(steps * step_s if steps else min(amount, step_s / 4)) for steps, amount in cells]


class SizeUnit(NamedTuple):
    """The unit of all sizes in one column, powers of 1024: named once in its head, so that numbers compare."""

    name: str
    bytes: int

    @classmethod
    def of(cls, sizes_b: Iterable[float | None]) -> "SizeUnit":
        """Return the unit of the largest of some sizes."""
        largest_b = max((size for size in sizes_b if size is not None), default=0.0)
        power = next((power for power in range(5, 0, -1) if largest_b >= 1 << 10 * power), 0)
        return cls(f"{_POWERS[power - 1]}iB" if power else "B", 1 << 10 * power)

    def number(self, size_b: float) -> str:
        """Print bytes without the unit, with one decimal; a size above 0 is never printed as 0."""
        return say_number(size_b / self.bytes, 1 if self.bytes > 1 else 0)


def _rounded(parts: Sequence[float], total: int) -> list[int]:
    """Return whole numbers that add up to the total: the largest fractions are rounded up.

    Parts that are not all of the total are rounded one by one.
    """
    shown = [int(part) for part in parts]
    missing = total - sum(shown)
    if not 0 <= missing <= sum(part > whole for part, whole in zip(parts, shown, strict=True)):
        return [round(part) for part in parts]
    by_fraction = sorted(range(len(parts)), key=lambda place: shown[place] - parts[place])
    for place in by_fraction[:missing]:
        shown[place] += 1
    return shown


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
