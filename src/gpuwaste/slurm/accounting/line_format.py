"""The lines of tables that DuckDB reads: values with a separator, both of them characters that no name has."""

from collections.abc import Iterable, Iterator
from typing import Final

SEPARATOR: Final = "\x1d"
NULL: Final = "\x1c"


def line_text(values: Iterable[str | float | None]) -> Iterator[str]:
    """Yield values as a line has them."""
    return (NULL if value is None else str(value) for value in values)
