"""Values as Slurm writes them, in slurm.conf and in the output of its commands: numbers, sizes, modes, lists."""

from collections.abc import Mapping
from typing import Final

from gpuwaste.core.errors import ParseError
from gpuwaste.core.text import words_of
from gpuwaste.core.units import parse_duration_s, parse_size_b
from gpuwaste.slurm.site.cluster_model import PreemptMode

Fields = Mapping[str, str]
MIB: Final = 1 << 20
MOST: Final = (1 << 62) - 1  # of any amount: bytes of memory, seconds, counts
_NO_LIMIT: Final = frozenset({"", "UNLIMITED", "INFINITE", "-1", "NONE", "N/A", "(NULL)"})
_EVERYBODY: Final = frozenset({"", "ALL", "N/A", "(NULL)"})
_YES: Final = frozenset({"YES", "UP", "TRUE", "1"})
_NO: Final = frozenset({"NO", "DOWN", "FALSE", "0"})
_SUFFIXES: Final = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "P": 1 << 50}
_MAX_DIGITS: Final = 18


def whole(text: str, name: str) -> int:
    """Return an integer. Raises ParseError naming the key."""
    text = text.strip()
    if not (text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS):
        raise ParseError(f"{words_of(name, 40)}={words_of(text, 40)}: expected a whole number")
    return int(text)


def truth(text: str) -> bool | None:
    """Return a flag from any of the words of slurm.conf's parser (s_p_handle_boolean), None for another word."""
    word = text.strip().upper()
    return True if word in _YES else False if word in _NO else None


def limit(text: str, name: str) -> int | None:
    """Return an integer, None for no limit. Raises ParseError."""
    return None if text.strip().upper() in _NO_LIMIT else whole(text, name)


def seconds(text: str) -> int | None:
    """Return the seconds of a Slurm duration (a plain number: minutes), None for no limit. Raises ParseError."""
    return None if text.strip() == "-1" else parse_duration_s(text)


def factor(text: str, name: str) -> float:
    """Return a number of at least 0. Raises ParseError."""
    try:
        value = float(text) if len(text) <= _MAX_DIGITS * 2 else -1.0
    except ValueError:
        value = -1.0
    if not 0 <= value < MOST:
        raise ParseError(f"{words_of(name, 40)}={words_of(text, 40)}: expected a number of 0 or more")
    return value


def size_text(size_b: int) -> str:
    """Return bytes in the form that `parse_size_b` reads with default unit M: 512G, or 7B for bytes, never rounded."""
    for unit in ("P", "T", "G", "M", "K"):
        if size_b and size_b % _SUFFIXES[unit] == 0:
            return f"{size_b // _SUFFIXES[unit]}{unit}"
    return f"{size_b}B" if size_b else "0"


def size(text: str) -> int:
    """Return bytes; a number without a unit is MiB, as in RealMemory, and 7B are bytes. Raises ParseError."""
    text = text.strip()
    found = parse_size_b(text[:-1]) if text[-2:-1].isdigit() and text[-1:] in "bB" else parse_size_b(text, "M")
    if found > MOST:
        raise ParseError(f"size {text[:40]!r}: larger than any memory")
    return found


def preempt_mode(text: str) -> PreemptMode | None:
    """Return a mode; None for the cluster's own. Suspension is not modelled: such jobs are not preempted ("off")."""
    word = text.strip().lower()
    if word in {"", "cluster", "n/a", "(null)"}:
        return None
    for mode in ("cancel", "requeue"):
        if mode in word.split(","):
            return "cancel" if mode == "cancel" else "requeue"
    return "off"


def names(text: str) -> frozenset[str]:
    """Return a list's names; ALL and an empty list are the empty set."""
    return frozenset() if text.strip().upper() in _EVERYBODY else frozenset(part for part in text.split(",") if part)
