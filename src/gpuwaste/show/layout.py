"""Parts of the text reports: title, table, bar lines, notes; 80 columns, colour only if requested."""

import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import Final

from gpuwaste.core.text import harmless
from gpuwaste.core.units import QUANTITY
from gpuwaste.show.terminal_cells import bar, fit, one_line, uncut, width

COLUMNS: Final = 80
_BAR: Final = 40
_PATH: Final = re.compile(r"(?:^|[\s'\"(:])/\w")
_RED: Final = "31"
_YELLOW: Final = "33"
_BOLD: Final = "1"
_MUCH: Final = 0.5
_SOME: Final = 0.1
_NO_BREAK: Final = "\u00a0"


@dataclass(frozen=True, slots=True)
class Look:
    """How a text is printed: with colour or not, in which zone (None: the caller's), with headers or not."""

    colour: bool = False
    zone: tzinfo | None = None
    header: bool = True
    recorded: bool = False

    def paint(self, text: str, code: str) -> str:
        """Return the text in a colour, if colour is on."""
        return f"\x1b[{code}m{text}\x1b[0m" if self.colour else text

    def title(self, text: str) -> list[str]:
        """Return a title between two rules, with a label for a recording. The caller cuts names in it, but not ids."""
        line = f"{uncut(text)}{' [recorded]' if self.recorded else ''}"
        rule = "=" * COLUMNS
        return [rule, self.paint(line.center(COLUMNS).rstrip(), _BOLD), rule]

    def heading(self, text: str) -> list[str]:
        """Return a table's heading."""
        label = " [recorded]" if self.recorded else ""
        return ["", self.paint(f"{text}{label}", _BOLD)] if self.header else []

    def table(self, headers: Sequence[str], rows: Sequence[Sequence[str]], left: frozenset[int]) -> list[str]:
        """Return a table; columns in `left` are left-aligned, others right-aligned. The last one may hold any name."""
        if not rows:
            return []
        shown = [headers, *rows] if self.header else rows
        widths = [max(map(width, column)) for column in zip(*shown, strict=True)]
        return ["  " + " ".join(_aligned(row, widths, left)).rstrip() for row in shown]

    def measure(self, name: str, ratio: float | None, text: str, *, bad: bool = False) -> str:
        """Return one line with a bar: `  wasted  [|||   48%]  12.5h`."""
        drawn = bar(ratio, _BAR)
        if bad and ratio is not None and ratio >= _SOME:
            drawn = self.paint(drawn, _RED if ratio >= _MUCH else _YELLOW)
        return f"  {name:<12}{drawn}  {text}".rstrip()


def _aligned(row: Sequence[str], widths: Sequence[int], left: frozenset[int]) -> Iterator[str]:
    """Yield the cells padded with blanks to their display widths."""
    for place, (cell, columns) in enumerate(zip(row, widths, strict=True)):
        blanks = " " * (columns - width(cell))
        yield cell + blanks if place in left else blanks + cell


def facts(pairs: Sequence[tuple[str, str]]) -> list[str]:
    """Return names and values in two columns; a value too wide for its half is on a separate line, uncut."""
    lines: list[str] = []
    half = COLUMNS // 2 - 2
    pending = ""
    for name, value in pairs:
        cell = f"{name + ':':<13} {value}"
        if pending and len(cell) <= half:
            lines.append(f"  {pending:<{half}}{cell}".rstrip())
            pending = ""
            continue
        if pending:
            lines.append(f"  {pending}".rstrip())
        pending = "" if len(cell) >= half else cell
        if not pending:
            lines.append(f"  {cell}".rstrip())
    return [*lines, f"  {pending}".rstrip()] if pending else lines


def bullet(text: str) -> list[str]:
    """Return a note, wrapped between words; a note with a path is one line, since a path may have blanks."""
    if _PATH.search(text):
        return [f"  * {one_line(text)}"]
    return wrapped(text, COLUMNS, "  * ", "    ")


def wrapped(text: str, columns: int, first: str = "", later: str = "") -> list[str]:
    """Return the lines of a text, broken between words but not between a number and its unit."""
    whole = QUANTITY.sub(lambda match: match[0].replace(" ", _NO_BREAK), text)
    lines = textwrap.wrap(
        whole, columns, initial_indent=first, subsequent_indent=later, break_on_hyphens=False, break_long_words=False
    )
    return [line.replace(_NO_BREAK, " ") for line in lines]


def said_lines(texts: Sequence[str]) -> list[str]:
    """Return the lines of a verdict as the user saw them, sanitized."""
    return [f"    {fit(text, COLUMNS - 4)}" if len(text) <= COLUMNS - 4 else f"    {harmless(text)}" for text in texts]
