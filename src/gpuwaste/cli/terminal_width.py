"""How wide a terminal is, for help and for reports."""

import os


def terminal_columns() -> int:
    """Return the width of the terminal: COLUMNS, else the terminal's own, else 80."""
    columns = os.environ.get("COLUMNS", "")
    try:
        return int(columns) if columns.isdecimal() and int(columns) else os.get_terminal_size().columns or 80
    except OSError:
        return 80
