"""Documents for programs: JSON, one line per row with `|` between, and CSV without formulas for spreadsheets."""

import csv
import io
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from gpuwaste.core.fields import Document
from gpuwaste.core.text import harmless

Row = Mapping[str, Any]
FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\uff1d", "\uff0b", "\uff0d", "\uff20")  # the last: full width
# A cell begins at the begin of the text, and where the program that opens the file uses another separator than the
# comma. Some programs ignore blanks and quotes before the formula.
_BEGINS: Final = re.compile(f'(^|[;|\t])(?=[ "]*[{re.escape("".join(FORMULA))}])')


def to_json(document: Mapping[str, Any]) -> str:
    """Return the document unchanged; characters outside ASCII are escaped, so that no terminal interprets them."""
    return json.dumps(document, indent=2) + "\n"


def to_parsable(document: Document, header: bool = True, part: str = "") -> str:
    """Return one line per row, `|` between the cells, times in UTC seconds; an unknown cell is empty."""
    return parsable_rows(*table(document, part), header=header)


def parsable_rows(columns: Sequence[str], rows: Iterable[Row], *, header: bool = True) -> str:
    """Return one line per row, as `to_parsable` does for the rows of a document."""
    lines = ["|".join(columns)] if header else []
    lines += ["|".join(_cell(row.get(c)).replace("|", "\\x7c") for c in columns) for row in rows]
    return "".join(f"{line}\n" for line in lines)


def to_csv(document: Document, header: bool = True, part: str = "") -> str:
    """Return CSV; text that a spreadsheet could read as formula, with any separator, starts with an apostrophe."""
    return csv_rows(*table(document, part), header=header)


def csv_rows(columns: Sequence[str], rows: Iterable[Row], *, header: bool = True) -> str:
    """Return CSV, as `to_csv` does for the rows of a document."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    if header:
        writer.writerow(columns)
    writer.writerows([_spreadsheet(row.get(c)) for c in columns] for row in rows)
    return out.getvalue()


def table(document: Document, part: str = "") -> tuple[Sequence[str], list[Row]]:
    """Return columns and rows of a document or of one of its tables; the last column is whether it is a recording."""
    columns, rows = document.table(part)
    mark = {"recorded": getattr(document, "recorded", False)}
    return (*columns, "recorded"), [{**row, **mark} for row in rows]


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, float):
        return f"{value:.4f}".rstrip("0").rstrip(".")
    return harmless(str(value))


def _spreadsheet(value: Any) -> str:
    cell = _cell(value)
    if isinstance(value, int | float):
        return cell
    if isinstance(value, str) and value.startswith(FORMULA):
        cell = f"'{cell}"  # its first character may be shown as an escape
    return _BEGINS.sub(r"\1'", cell)
