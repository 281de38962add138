"""How wide a terminal is, for help and for reports."""

import os
from typing import Final

NARROWEST: Final = 40
WIDEST: Final = 200
_USUAL: Final = 80


def terminal_columns() -> int:
    """Return the width of the terminal, at least 40 and at most 200: COLUMNS, else the terminal's own, else 80."""
    given = os.environ.get("COLUMNS", "")
    try:
        found = int(given) if given.isdecimal() and int(given) else os.get_terminal_size().columns
    except (OSError, ValueError):
        found = _USUAL
    return min(max(found or _USUAL, NARROWEST), WIDEST)
