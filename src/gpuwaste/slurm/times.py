"""Instants and processor times as Slurm's commands print them under SLURM_TIME_FORMAT=%s and TZ=UTC."""

import re
from datetime import UTC, datetime
from typing import Final

from gpuwaste.core.errors import ParseError
from gpuwaste.core.units import DAY_S, HOUR_S, MINUTE_S

_ABSENT: Final = frozenset({"", "Unknown", "None", "N/A", "(null)", "Never"})
_ISO = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}")
_MAX_DIGITS: Final = 12
_CPU = re.compile(r"(?:(?:(\d{1,7})-)?(\d{1,7}):)?(\d{1,7}):(\d{1,2}(?:\.\d{1,9})?)", re.ASCII)


def parse_time_s(text: str) -> int | None:
    """Return UTC seconds from epoch seconds or YYYY-MM-DDTHH:MM:SS (taken as UTC); None for Unknown and its like.

    Raises ParseError.
    """
    text = text.strip()
    if text in _ABSENT:
        return None
    if text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS:
        return int(text) or None  # Slurm keeps 0 for "not yet"
    if _ISO.fullmatch(text):
        try:
            return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())
        except ValueError:
            pass
    raise ParseError(f"time {text[:40]!r}: expected seconds since the epoch or YYYY-MM-DDTHH:MM:SS")


def parse_cpu_s(text: str) -> float | None:
    """Return seconds from MM:SS.mmm, HH:MM:SS.mmm or D-HH:MM:SS; None for an empty text. Raises ParseError."""
    text = text.strip()
    if text in _ABSENT or text == "INVALID":
        return None
    match = _CPU.fullmatch(text)
    if match is None:
        raise ParseError(f"processor time {text[:40]!r}: expected [D-[HH:]]MM:SS[.mmm]")
    days, hours, minutes = (int(group or 0) for group in match.groups()[:3])
    return days * DAY_S + hours * HOUR_S + minutes * MINUTE_S + float(match[4])


def format_time(seconds: int) -> str:
    """Write UTC seconds as the commands' --starttime and --endtime take them under TZ=UTC."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
