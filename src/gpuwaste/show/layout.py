"""Parts of the text reports: title, table, bar lines, notes; as wide as the terminal, colour only if requested."""

import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import Final

from gpuwaste.core.text import harmless
from gpuwaste.core.units import QUANTITY
from gpuwaste.show.terminal_cells import bar, fit, one_line, percent, uncut, width

COLUMNS: Final = 80  # where the output is not a terminal
_LEAST_COLUMNS: Final = 40
_MOST_COLUMNS: Final = 200
_PROSE: Final = 100
_LEAST_LAST: Final = 10
_LEAST_BAR: Final = 20
_BESIDE_BAR: Final = 36  # the name before a bar and the text after it
_BAR: Final = 40
_PATH: Final = re.compile(r"(?:^|[\s'\"(:])/\w")
_RED: Final = "31"
_YELLOW: Final = "33"
_BOLD: Final = "1"
_MUCH: Final = 0.5
_SOME: Final = 0.1
_NO_BREAK: Final = "\u00a0"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table that fits the terminal: one of a higher `rank` is left out earlier, one of rank 0 never.

    The last column of a table holds names of any length: they are left-aligned and cut to what is left and to `most`.
    With `whole` it is a column like all others.
    """

    head: str
    cells: Sequence[str]
    left: bool = False
    rank: int = 0
    most: int = 40
    whole: bool = False

    @property
    def width(self) -> int:
        """The widest cell, in columns of the terminal."""
        return max(map(width, (self.head, *self.cells)))


@dataclass(frozen=True, slots=True)
class Look:
    """How a text is printed: with colour or not, in which zone (None: the caller's), with headers or not, how wide."""

    colour: bool = False
    zone: tzinfo | None = None
    header: bool = True
    recorded: bool = False
    columns: int = COLUMNS  # from 40 to 200

    def __post_init__(self) -> None:
        """Keep the width where a table can be read."""
        object.__setattr__(self, "columns", max(_LEAST_COLUMNS, min(self.columns, _MOST_COLUMNS)))

    @property
    def prose(self) -> int:
        """The columns of running text: no line is longer than a reader's eye can follow."""
        return min(self.columns, _PROSE)

    def paint(self, text: str, code: str) -> str:
        """Return the text in a colour, if colour is on."""
        return f"\x1b[{code}m{text}\x1b[0m" if self.colour else text

    def title(self, text: str) -> list[str]:
        """Return a title between two rules, with a label for a recording. The caller cuts names in it, but not ids."""
        line = f"{uncut(text)}{' [recorded]' if self.recorded else ''}"
        rule = "=" * self.prose
        return [rule, self.paint(line.center(self.prose).rstrip(), _BOLD), rule]

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

    def fitted(self, columns: Sequence[Column]) -> list[str]:
        """Return a table that fits: the columns of the highest ranks are left out first, the last one is cut."""
        kept, last = list(columns), columns[-1]
        least = last.width if last.whole else min(last.width, _LEAST_LAST)
        while (room := self.columns - 2 - sum(1 + column.width for column in kept if column is not last)) < least:
            droppable = [column for column in kept if column.rank]
            if not droppable:
                break
            kept.remove(max(droppable, key=lambda column: column.rank))
            if kept[-1] is not last:
                least = 0
        if kept[-1] is last and not last.whole:
            names = [fit(cell, max(least, min(room, last.most))) for cell in last.cells]
            kept[-1] = Column(last.head, names, left=True)
        rows = list(zip(*(column.cells for column in kept), strict=True))
        left = frozenset(place for place, column in enumerate(kept) if column.left)
        return self.table([column.head for column in kept], rows, left)

    def facts(self, pairs: Sequence[tuple[str, str]]) -> list[str]:
        """Return names and values in two columns of the terminal, in one where it is narrow."""
        return facts(pairs, self.prose)

    def bullet(self, text: str) -> list[str]:
        """Return a note that fits the terminal."""
        return bullet(text, self.prose)

    def measure(self, name: str, ratio: float | None, text: str, *, bad: bool = False) -> str:
        """Return one line with a bar: `  wasted  [|||   48 %]  12.5 GPU-hours`; on a narrow terminal without."""
        room = self.columns - _BESIDE_BAR
        if room < _LEAST_BAR:
            shown = "unknown" if ratio is None else percent(ratio)
            return f"  {name}: {shown}{', ' if text else ''}{text}"
        drawn = bar(ratio, min(_BAR, room))
        if bad and ratio is not None and ratio >= _SOME:
            drawn = self.paint(drawn, _RED if ratio >= _MUCH else _YELLOW)
        return f"  {name:<12}{drawn}  {text}".rstrip()


def _aligned(row: Sequence[str], widths: Sequence[int], left: frozenset[int]) -> Iterator[str]:
    """Yield the cells padded with blanks to their display widths."""
    for place, (cell, columns) in enumerate(zip(row, widths, strict=True)):
        blanks = " " * (columns - width(cell))
        yield cell + blanks if place in left else blanks + cell


def facts(pairs: Sequence[tuple[str, str]], columns: int = COLUMNS) -> list[str]:
    """Return names and values in two columns; a value too wide for its half is on a separate line, uncut."""
    lines: list[str] = []
    half = columns // 2 - 2
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


def bullet(text: str, columns: int = COLUMNS) -> list[str]:
    """Return a note, wrapped between words; a note with a path is one line, since a path may have blanks."""
    if _PATH.search(text):
        return [f"  * {one_line(text)}"]
    return wrapped(text, columns, "  * ", "    ")


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
