"""ActionOption: a parameter of an action, as text in a rule's file, with its type and bounds."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from gpuwaste.core.errors import ParseError
from gpuwaste.core.units import format_duration, parse_duration_s

_PLAIN: Final = re.compile(r"[^\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]*")
_BREAKS: Final = {";", "="}  # in a comment of Slurm's, `;gw=ID` is the submit advice's own mark


@dataclass(frozen=True, slots=True)
class ActionOption:
    """One parameter. `check` returns what is wrong with a text, "" for nothing; `default` None: it must be given."""

    name: str
    about: str
    check: Callable[[str], str]
    default: str | None = None


def line(most: int) -> Callable[[str], str]:
    """Return a check for a text of one line without control characters."""

    def check(text: str) -> str:
        if not text.strip():
            return "empty"
        if len(text) > most:
            return f"{len(text)} characters, {most} at most"
        return "" if _PLAIN.fullmatch(text) else "a line break or control character"

    return check


def mark(most: int) -> Callable[[str], str]:
    """Return a check for a line that becomes part of a job's comment: without `;` and `=`."""
    plain = line(most)

    def check(text: str) -> str:
        return plain(text) or ("; and = are not allowed" if _BREAKS & set(text) else "")

    return check


def lines(most: int) -> Callable[[str], str]:
    """Return a check for a text of several lines: line breaks and tabs are the only control characters."""

    def check(text: str) -> str:
        if not text.strip():
            return "empty"
        if len(text) > most:
            return f"{len(text)} characters, {most} at most"
        return "" if _PLAIN.fullmatch(text.replace("\n", " ").replace("\t", " ")) else "a control character"

    return check


def choice(*known: str) -> Callable[[str], str]:
    """Return a check for one of some words."""

    def check(text: str) -> str:
        return "" if text in known else f"{text!r:.40}: expected {', '.join(known)}"

    return check


def duration(least_s: int, most_s: int) -> Callable[[str], str]:
    """Return a check for a duration as Slurm writes it, between two bounds in seconds."""

    def check(text: str) -> str:
        try:
            found = parse_duration_s(text)
        except ParseError as error:
            return str(error)
        if found is not None and least_s <= found <= most_s:
            return ""
        return f"{text!r:.40}: expected a duration from {format_duration(least_s)} to {format_duration(most_s)}"

    return check
