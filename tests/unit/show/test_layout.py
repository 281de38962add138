"""Tables that fit the terminal: less important columns are left out, ids are never cut."""

import pytest

from gpuwaste.show.layout import Column, Look
from gpuwaste.show.terminal_cells import width

NAME = "a-name-that-is-longer-than-any-column-of-a-narrow-terminal"


def table(columns: int, *, whole: bool = False) -> list[str]:
    """Return a table of an id, two numbers of different rank and a name."""
    return Look(columns=columns).fitted(
        [
            Column("JOBID", ["12345678"], left=True),
            Column("IMPORTANT", ["1"], rank=1),
            Column("LESS IMPORTANT", ["2"], rank=2),
            Column("NAME", [NAME], whole=whole),
        ]
    )


@pytest.mark.parametrize("columns", [1, 40, 60, 80, 120, 200, 1000])
def test_a_table_is_no_wider_than_the_terminal(columns: int) -> None:
    """Between 40 and 200 columns each line fits; a narrower terminal counts as 40, a wider one as 200."""
    assert max(map(width, table(columns))) <= max(40, min(columns, 200))


def test_the_columns_of_the_highest_rank_go_first() -> None:
    """At 80 columns all are there, at 40 the less important one is missing and the name is cut."""
    assert table(80)[0].split() == ["JOBID", "IMPORTANT", "LESS", "IMPORTANT", "NAME"]
    head, row = table(40)
    assert head.split() == ["JOBID", "IMPORTANT", "NAME"]
    assert row.endswith("~")


def test_a_whole_name_is_never_cut() -> None:
    """A node's name is copied: the other columns make room, and it is printed in full at any width."""
    head, row = table(40, whole=True)
    assert head.split() == ["JOBID", "NAME"]
    assert row.endswith(NAME)


def test_a_narrow_terminal_has_no_bars() -> None:
    """At 40 columns a share is a number, which still fits beside its text."""
    narrow, wide = (Look(columns=columns).measure("Wasted", 0.75, "3.00 of 4.00 GPU-hours") for columns in (40, 80))
    assert narrow == "  Wasted: 75 %, 3.00 of 4.00 GPU-hours"
    assert "|||" in wide


def test_a_last_column_of_numbers_is_aligned_right_and_can_be_left_out() -> None:
    """With `whole` the last column is one like the others; one of the highest rank goes first."""
    columns = [
        Column("SCHEDULER", ["easy", "fcfs"], left=True),
        Column("MEAN WAIT", ["1-02:03:04", "00:12:30"]),
        Column("MAKESPAN", ["10-00:00:00", "01:00:00"], rank=2, whole=True),
        Column("LATER", ["7 %", "100 %"], rank=3, whole=True),
    ]
    assert Look(columns=80).fitted(columns)[1:] == [
        "  easy      1-02:03:04 10-00:00:00   7 %",
        "  fcfs        00:12:30    01:00:00 100 %",
    ]
    assert Look(columns=40).fitted(columns)[1] == "  easy      1-02:03:04 10-00:00:00   7 %"
    wide = [*columns[:2], Column("A LONG HEAD", ["1", "2"]), *columns[2:]]
    assert Look(columns=40).fitted(wide)[0].split()[-3:] == ["A", "LONG", "HEAD"]
