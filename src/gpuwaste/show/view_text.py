"""Texts of `gpuwaste analyze`: a view as sentences and a table, the changes between two, and rows for programs."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from gpuwaste.show.layout import COLUMNS, Look, bullet, wrapped
from gpuwaste.show.layout import Column as TableColumn
from gpuwaste.show.machine_formats import csv_rows, parsable_rows
from gpuwaste.show.terminal_cells import UNKNOWN, fit, local_time
from gpuwaste.show.view_document import (
    Cell,
    Column,
    ComparisonDocument,
    ViewDocument,
    column_title,
    first_sentence,
    number_text,
    value_text,
)

_ROWS: Final = 20
_NAME: Final = 24
_LONG_NAME: Final = 40  # on a terminal of so many columns and more:
_WIDE: Final = 100
_MEANS: Final = 60
_CHANGE: Final = ("id", "means", "unit", "before", "after", "difference", "low", "high", "beyond_noise")
_TEST: Final = {True: "more than noise", False: "within noise", None: UNKNOWN}
_KEPT: Final = 2  # places of the first columns, which a narrow terminal keeps
_NAMED_IN_CELLS: Final = frozenset({"share", "s", "UTC s", "jobs", "users"})
_NO_UNIT: Final = frozenset({"", "jobs", "users", "GPU-hours", "CPU-hours", "h"})


def view_text(document: ViewDocument, look: Look, output: str = "-o DIR") -> str:
    """Return a view as text: its sentences, its table, its notes; `output` is the option that writes all rows."""
    lines = [*look.title(document.title), f"  {_period(document, look)}", ""]
    for sentence in document.narrative:
        lines += bullet(sentence)
    shown = document.rows[:_ROWS]
    lines += [*([""] if document.narrative else []), *_table(document, look)] if shown else []
    more = len(document.rows) - len(shown)
    lines += [f"  {more:,} more {'row' if more == 1 else 'rows'}: {output}"] if more else []
    lines += [f"  {document.rows_left_out:,} more rows left out"] if document.rows_left_out else []
    lines += [""] if document.narrative or shown else []
    for note in document.notes:
        lines += bullet(note)
    return "\n".join(lines) + "\n"


def without_data_text(document: ViewDocument | ComparisonDocument) -> str:
    """Return one line for a view without data, "" for one with data: its title and the reason."""
    view = document.after if isinstance(document, ComparisonDocument) else document
    if view.weight is not None or (isinstance(document, ComparisonDocument) and document.before.weight is not None):
        return ""
    return "\n".join(wrapped(f"{view.title}: {first_sentence(view)}", COLUMNS, "", "  ")) + "\n"


def comparison_text(document: ComparisonDocument, look: Look) -> str:
    """Return the changes between two views as text: the largest one as a sentence, then one table."""
    lines = look.title(f"{document.title}: compared")
    lines += [f"  before  {_period(document.before, look)}", f"  after   {_period(document.after, look)}", ""]
    lines += bullet(document.narrative[0]) if document.narrative else []
    tested = any(change.beyond_noise is not None for change in document.changes)
    changed = [change for change in document.changes if change.difference]
    rows = [
        [fit(c.means, _MEANS), c.before_text, c.after_text, c.text, *([_TEST[c.beyond_noise]] if tested else [])]
        for c in changed[:_ROWS]
    ]
    headers = ["", "BEFORE", "AFTER", "CHANGE", *(["TEST"] if tested else [])]
    lines += ["", *look.table(headers, rows, frozenset({0, 4}))] if rows else []
    same = len(document.changes) - len(changed)
    lines += [f"  {same} more {'figure is' if same == 1 else 'figures are'} the same", ""] if same else [""]
    for note in dict.fromkeys([*document.notes, *document.after.notes]):
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


def _cell(value: Cell, unit: str, look: Look) -> str:
    """Return a cell without the unit that the head of its column, or the line above the table, names."""
    if value is None:
        return UNKNOWN
    if isinstance(value, str):
        return fit(value, _LONG_NAME if look.columns >= _WIDE else _NAME)
    if unit == "UTC s":
        return local_time(value, look.zone)
    if unit in _NO_UNIT:
        return number_text(value, unit)
    return value_text(value, unit).removesuffix(f" {unit}")


def _table(document: ViewDocument, look: Look) -> list[str]:
    """Return the first rows, without the columns that are 0 or unknown in all of them."""
    rows = document.rows[:_ROWS]
    places = [place for place, _ in enumerate(document.columns) if any(row[place] for row in rows)]
    columns = [document.columns[place] for place in places]
    if all(column.unit == "" for column in columns):
        return []
    shared = _shared_unit(columns)
    table = [
        TableColumn(
            (column.title if column.unit == shared else column_title(column)).upper(),
            [_cell(row[place], column.unit, look) for row in rows],
            left=any(isinstance(row[place], str) for row in rows),
            rank=max(0, at - _KEPT),
            whole=True,
        )
        for at, (place, column) in enumerate(zip(places, columns, strict=True))
    ]
    return [*([f"  in {shared}"] if shared and look.header else []), *look.fitted(table)]


def _shared_unit(columns: Sequence[Column]) -> str:
    """Return the unit that most columns have, named once above the table; "" where each has another one."""
    counted = Counter(column.unit for column in columns if column.unit and column.unit not in _NAMED_IN_CELLS)
    unit, times = max(counted.items(), key=lambda item: item[1], default=("", 0))
    return unit if times > 1 else ""
