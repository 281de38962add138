"""CSV files that a site writes by hand: their text and rows, with the line in every error."""

import csv
from collections.abc import Iterator

from gpuwaste.core.errors import ParseError


def csv_text(data: bytes, where: str) -> str:
    """Return the text of a file, without a byte order mark. Raises ParseError with the line that is no UTF-8."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ParseError(f"{where}: line {line} is not UTF-8: save the file as UTF-8") from error


def csv_rows(text: str, where: str, expected: str = "expected CSV") -> Iterator[tuple[int, list[str]]]:
    """Yield the rows that are not empty with their lines. Raises ParseError that ends with `expected`."""
    reader = csv.reader(text.splitlines(keepends=True), strict=True)
    try:
        for row in reader:
            if row:
                yield reader.line_num, row
    except csv.Error as error:
        raise ParseError(f"{where}: line {reader.line_num}: {error}: {expected}") from error
