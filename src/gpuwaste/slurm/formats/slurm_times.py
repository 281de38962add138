"""Instants and processor times as Slurm's commands print them: epoch seconds, or dates in UTC or a site's zone."""

import re
from datetime import UTC, datetime, tzinfo
from typing import Final
from zoneinfo import ZoneInfo

from gpuwaste.core.errors import ParseError, UsageError
from gpuwaste.core.units import DAY_S, HOUR_S, MINUTE_S

_ABSENT: Final = frozenset({"", "Unknown", "None", "N/A", "(null)", "Never"})
_ISO = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(Z|[+-]\d{2}:?\d{2})?", re.ASCII)
_MAX_DIGITS: Final = 12
_CPU = re.compile(r"(?:(?:(\d{1,7})-)?(\d{1,7}):)?(\d{1,7}):(\d{1,2}(?:\.\d{1,9})?)", re.ASCII)


def parse_time_s(text: str, zone: tzinfo = UTC, *, later: bool = False) -> int | None:
    """Return UTC seconds from epoch seconds or YYYY-MM-DDTHH:MM:SS[+HH:MM]; None for Unknown and its like.

    A date without an offset is in `zone`; in the hour that is repeated in autumn it is the earlier of the two
    instants, or with `later` the later. Raises ParseError.
    """
    text = text.strip()
    if text in _ABSENT:
        return None
    if text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS:
        return int(text) or None  # Slurm keeps 0 for "not yet"
    match = _ISO.fullmatch(text)
    if match:
        try:
            instant = datetime.fromisoformat(text)
            return int((instant if match[1] else instant.replace(tzinfo=zone, fold=int(later))).timestamp())
        except (ValueError, OverflowError):
            pass
    raise ParseError(f"time {text[:40]!r}: expected seconds since the epoch or YYYY-MM-DDTHH:MM:SS")


def parse_interval_s(start: str, end: str, length_s: int | None, zone: tzinfo) -> tuple[int | None, int | None]:
    """Return UTC seconds of a start and an end in `zone`.

    Where a repeated hour makes one of them ambiguous, the pair that is `length_s` apart is taken, else the earlier
    instants. Raises ParseError.
    """
    first = parse_time_s(start, zone), parse_time_s(end, zone)
    if zone is UTC or length_s is None or None in first:
        return first
    for later in ((False, False), (True, True), (False, True), (True, False)):
        begun, ended = parse_time_s(start, zone, later=later[0]), parse_time_s(end, zone, later=later[1])
        if begun is not None and ended is not None and ended - begun == length_s:
            return begun, ended
    return first


def own_start(submit: int, start: int | None, elapsed_s: int | None) -> int | None:
    """Return a run's start; None where it is an earlier run's, which a requeue keeps until the job starts again."""
    return None if start is not None and start < submit and not elapsed_s else start


def parse_cpu_s(text: str) -> float | None:
    """Return seconds from MM:SS.mmm, HH:MM:SS.mmm or D-HH:MM:SS; None for an empty text. Raises ParseError."""
    text = text.strip()
    if text in _ABSENT or text == "INVALID":
        return None
    match = _CPU.fullmatch(text)
    if match is None:
        raise ParseError(f"processor time {text[:40]!r}: expected [D-[HH:]]MM:SS[.mmm]")
    days, hours, minutes, seconds = match.groups("0")
    return int(days) * DAY_S + int(hours) * HOUR_S + int(minutes) * MINUTE_S + float(seconds)


def format_time(seconds: int) -> str:
    """Write UTC seconds as the commands' --starttime and --endtime take them under TZ=UTC."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def zone_of(name: str) -> tzinfo:
    """Return the zone of an IANA name. Raises UsageError."""
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):  # ZoneInfoNotFoundError is a KeyError
        raise UsageError(f"time zone {name[:40]!r}: unknown on this host: write it as Europe/Oslo or UTC") from None
