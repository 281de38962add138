"""Cells for a terminal: names sanitized and cut by display width, bars, durations, percentages, local times."""

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Mapping
from datetime import datetime, tzinfo
from typing import Any, Final, TypeVar, cast

from gpuwaste.core.job_states import STATES
from gpuwaste.core.text import harmless
from gpuwaste.core.units import format_duration, say_duration, say_percent

T = TypeVar("T")
UNKNOWN: Final = "-"
_UUID: Final = re.compile(r"(GPU-[0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_LONGEST: Final = 4096
_WIDE: Final = frozenset("WF")


# Control, format (bidirectional overrides, zero-width joiners), surrogate, private use, unassigned, line separators.


def harmless_document(value: T) -> T:
    """Return a document with every text sanitized: the server that sent it may not be a real hub."""
    found: Any = value
    if isinstance(value, str):
        found = harmless(value)
    elif isinstance(value, Mapping):
        found = {harmless(str(key)): harmless_document(item) for key, item in value.items()}
    elif isinstance(value, list | tuple):
        found = [harmless_document(item) for item in value]
    elif names := getattr(value, "__struct_fields__", getattr(value, "__dataclass_fields__", ())):
        found = type(value)(**{name: harmless_document(getattr(value, name)) for name in names})
    return cast("T", found)


def one_line(text: str) -> str:
    """Return `text` sanitized and in one line; blanks inside a line are unchanged, since a path may have any."""
    return harmless(" ".join(line.strip() for line in text.splitlines() if line.strip()))


def uncut(text: str) -> str:
    """Return an id or a path sanitized and never cut, however wide: users copy it (a path has 4096 bytes)."""
    return fit(text, _LONGEST)


def gpu_names(uuids: Collection[str]) -> dict[str, str]:
    """Return a name for each GPU: the first block of its UUID, which NVIDIA's tools accept, if it is unique.

    MIG instances, and GPUs of one job with an equal first block, are named by the full UUID.
    """
    blocks = {uuid: match[1] if (match := _UUID.fullmatch(uuid)) else uncut(uuid) for uuid in uuids}
    alone = Counter(blocks.values())
    return {uuid: block if alone[block] == 1 else uncut(uuid) for uuid, block in blocks.items()}


def width(text: str) -> int:
    """Return the columns that harmless `text` takes on a terminal."""
    return len(text) if text.isascii() else sum(_columns(c) for c in text)


def fit(text: str, columns: int) -> str:
    """Return `text` sanitized and cut to `columns`, with `~` at the end if it was cut."""
    shown = harmless(text[: columns * 2 + 1])
    if width(shown) <= columns and len(text) <= columns * 2 + 1:
        return shown
    kept, used = "", 0
    for character in shown:
        used += _columns(character)
        if used > columns - 1:
            break
        kept += character
    return kept + "~"


def bar(ratio: float | None, columns: int = 40) -> str:
    """Draw a ratio 0..1 as `[|||||    48 %]`, `columns` wide; an unknown one is a text, never drawn as 0."""
    inner = columns - 2
    if ratio is None:
        return f"[{'unknown':>{inner}}]"
    label = percent(ratio)
    filled = "|" * round(min(1.0, max(0.0, ratio)) * inner)
    return f"[{filled[: inner - len(label)]:<{inner - len(label)}}{label}]"


def percent(ratio: float | None) -> str:
    """Print a ratio as whole percent; <1 % for small values above 0, >99 % for values just below 1."""
    return UNKNOWN if ratio is None else say_percent(ratio)


def share(part: float | None, whole: float) -> float | None:
    """Return part over whole; None where either is unknown."""
    return part / whole if part is not None and whole > 0 else None


def clock(seconds: float | None) -> str:
    """Print a duration for a table as Slurm does: 00:12:30, 1-02:03:04."""
    return UNKNOWN if seconds is None else format_duration(seconds)


def short(seconds: float | None) -> str:
    """Print a duration for a sentence: 45 s, 1 h 7 min."""
    return UNKNOWN if seconds is None else say_duration(seconds)


def local_time(utc_s: float | None, zone: tzinfo | None) -> str:
    """Print UTC seconds as sacct does, in `zone` or the caller's own."""
    if utc_s is None:
        return UNKNOWN
    return datetime.fromtimestamp(utc_s, tz=zone).strftime("%Y-%m-%dT%H:%M:%S")


def state_code(state: str) -> str:
    """Return squeue's short code of a state."""
    known = STATES.get(state)
    return known.code if known else "MIX" if state == "MIXED" else fit(state, 3)


def _columns(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in _WIDE else 1
