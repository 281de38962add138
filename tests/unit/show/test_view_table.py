"""The table of a view in the terminal: a unit that several columns have is named once, and it fits the terminal."""

from gpuwaste.show.layout import Look
from gpuwaste.show.view_document import Column, ViewDocument
from gpuwaste.show.view_text import view_text

COLUMNS = [
    Column(name="month", title="Month"),
    *(Column(name=f"h{n}", title=f"Kind number {n}", unit="GPU-hours") for n in range(9)),
    Column(name="share", title="Wasted share", unit="share"),
]
ROWS: list[list[str | int | float | None]] = [["June 2025", *(100.0 + n for n in range(9)), 0.41]]


def document() -> ViewDocument:
    return ViewDocument(
        view="hours", title="Hours", question="?", clusters=["c"], start=0, end=86400, generated=0, columns=COLUMNS,
        rows=ROWS, rows_left_out=0, charts=[], facts=[], narrative=[], notes=[], sql="", parameters={},
    )  # fmt: skip


def test_a_unit_of_several_columns_is_named_once() -> None:
    """The line above the table names GPU-hours; no head and no cell repeats it."""
    text = view_text(document(), Look(columns=200))
    assert text.count("GPU-hours") == 1
    assert "  in GPU-hours\n" in text
    assert "KIND NUMBER 8" in text
    assert "41 %" in text


def test_the_table_fits_a_narrow_terminal() -> None:
    """Columns at the end are left out where the terminal has no room; the first ones never."""
    lines = view_text(document(), Look(columns=60)).splitlines()
    assert max(map(len, lines)) <= 60
    assert any(line.split()[:2] == ["June", "2025"] for line in lines)
    assert "KIND NUMBER 0" in "\n".join(lines)
