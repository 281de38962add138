"""Texts of `gpuwaste analyze`: a view as sentences and a table, the changes between two, and rows for programs."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from gpuwaste.show.layout import Look, bullet
from gpuwaste.show.machine_formats import csv_rows, parsable_rows
from gpuwaste.show.terminal_cells import UNKNOWN, fit, local_time
from gpuwaste.show.view_document import Cell, Column, ComparisonDocument, ViewDocument, number_text, value_text

_ROWS: Final = 20
_NAME: Final = 24
_CHANGE: Final = ("id", "means", "unit", "before", "after", "difference", "low", "high", "beyond_noise")
_NO_UNIT: Final = frozenset({"", "jobs", "users", "GPU-hours", "CPU-hours", "h"})


def view_text(document: ViewDocument, look: Look) -> str:
    """Return a view as text: its sentences, its table, its notes."""
    lines = [*look.title(document.title), f"  {_period(document, look)}", ""]
    for sentence in document.narrative or ["Nothing in this window."]:
        lines += bullet(sentence)
    shown = document.rows[:_ROWS]
    lines += ["", *_table(document, look)] if shown else []
    more = len(document.rows) - len(shown) + document.rows_left_out
    lines += [f"  {more} more rows" if more != 1 else "  1 more row"] if more else []
    lines.append("")
    for note in document.notes:
        lines += bullet(note)
    return "\n".join(lines) + "\n"


def comparison_text(document: ComparisonDocument, look: Look) -> str:
    """Return the changes between two views as text."""
    lines = look.title(f"{document.title}: compared")
    lines += [f"  before  {_period(document.before, look)}", f"  after   {_period(document.after, look)}", ""]
    for sentence in document.narrative:
        lines += bullet(sentence)
    said = {True: "yes", False: "no", None: UNKNOWN}
    rows = [
        [fit(c.means, 44), c.before_text, c.after_text, c.text, said[c.beyond_noise]] for c in document.changes[:_ROWS]
    ]
    lines += ["", *look.table(["FACT", "BEFORE", "AFTER", "CHANGE", "BEYOND NOISE"], rows, frozenset({0})), ""]
    for note in [*document.notes, *document.after.notes]:
        lines += bullet(note)
    return "\n".join(lines) + "\n"


def view_csv(document: ViewDocument) -> str:
    """Return the table of a view as CSV."""
    return csv_rows([column.name for column in document.columns], _rows(document))


def comparison_csv(document: ComparisonDocument) -> str:
    """Return the changes between two views as CSV."""
    rows = [{name: getattr(change, name) for name in _CHANGE} for change in document.changes]
    return csv_rows(_CHANGE, rows)


def view_parsable(document: ViewDocument, *, header: bool = True) -> str:
    """Return the table of a view as rows of cells."""
    return parsable_rows([column.name for column in document.columns], _rows(document), header=header)


def _rows(document: ViewDocument) -> list[Mapping[str, Any]]:
    names = [column.name for column in document.columns]
    return [dict(zip(names, row, strict=True)) for row in document.rows]


def _period(document: ViewDocument, look: Look) -> str:
    clusters = fit(", ".join(document.clusters) or "no cluster", 40)
    return f"{local_time(document.start, look.zone)} to {local_time(document.end, look.zone)}, {clusters}"


def _line(columns: Sequence[Column], row: Sequence[Cell], look: Look) -> list[str]:
    return [_cell(cell, column.unit, look) for cell, column in zip(row, columns, strict=True)]


def _cell(value: Cell, unit: str, look: Look) -> str:
    if value is None:
        return UNKNOWN
    if isinstance(value, str):
        return fit(value, _NAME)
    if unit == "UTC s":
        return local_time(value, look.zone)
    if unit in _NO_UNIT:
        return number_text(value, unit)
    return value_text(value, unit)


def _table(document: ViewDocument, look: Look) -> list[str]:
    """Return the first rows, without the columns that are 0 in all of them."""
    rows = document.rows[:_ROWS]
    places = [place for place, _ in enumerate(document.columns) if any(row[place] != 0 for row in rows)]
    columns = [document.columns[place] for place in places]
    left = frozenset(at for at, place in enumerate(places) if any(isinstance(row[place], str) for row in rows))
    cells = [_line(columns, [row[place] for place in places], look) for row in rows]
    return look.table([column.title.upper() for column in columns], cells, left)
