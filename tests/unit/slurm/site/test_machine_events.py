"""Node events and reservations as sacctmgr and scontrol of Slurm 22.05 and 24.11 print them, and as they do not."""

from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwaste.core.errors import ParseError
from gpuwaste.slurm.site.associations import EVENT
from gpuwaste.slurm.site.machine_events import (
    RESERVATION,
    NodeOutage,
    PrintedRows,
    ReservedNodes,
    parse_events,
    parse_reserved,
    parse_shown_reservations,
)

EVENTS = """\
Cluster|NodeName|TimeStart|TimeEnd|State|Reason|User
gw||1796032561|Unknown||Cluster Registered TRES|
gw|gpu1|1796032561|1796032562|UNK|cold-start|slurm(64030)
gw|gpu2|1796032562|1796032566|DRAIN|fan for bob|root(0)
gw|gpu2|1796032566|1796032567|DRAIN$|fan|gpu1|x|root(0)
other|gpu2|1796032566|1796032567|DRAIN|fan|root(0)
gw|gpu2|1796032570|Unknown|DOWN|x|y|root(0)
"""
FOUND = (
    NodeOutage("gpu2", 1796032562, 1796032566, "DRAIN"),
    NodeOutage("gpu2", 1796032566, 1796032567, "DRAIN$"),
    NodeOutage("gpu2", 1796032570, None, "DOWN"),
)
RESERVED = """\
fan|1796032674|1796032680|MAINT,IGNORE_JOBS,SPEC_NODES|cpu=16|gpu2
two|1796032722|1796032726|IGNORE_JOBS,SPEC_NODES|cpu=16|gpu1
two|1796032726|1796033322|IGNORE_JOBS,SPEC_NODES|cpu=32|gpu[1-2]
licenses|1796032726|1796033322||license/matlab=2|
"""
SHOWN = """\
ReservationName=fan StartTime=1796032564 EndTime=1796033164 Duration=00:10:00
   Nodes=gpu2 NodeCnt=1 CoreCnt=16 Features=(null) PartitionName=(null) Flags=MAINT,IGNORE_JOBS,SPEC_NODES
   TRES=cpu=16
   Users=root Groups=(null) Accounts=(null) Licenses=(null) State=ACTIVE BurstBuffer=(null) Watts=n/a

ReservationName=odd StartTime=soon EndTime=1796033164 Duration=00:10:00
   Nodes=gpu2 Flags=
"""


def test_events_are_outages_whatever_their_reason_holds() -> None:
    """Only states that keep jobs away, of this cluster; a separator in the reason moves nothing that is read."""
    assert parse_events(EVENTS, cluster="gw") == PrintedRows(FOUND)


def test_reservations_have_a_row_for_each_time_between_changes() -> None:
    """As slurmdbd keeps them; one without nodes is none of the machine's."""
    found = parse_reserved(RESERVED, RESERVATION)
    assert found.rows == (
        ReservedNodes("fan", 1796032674, 1796032680, "gpu2", "MAINT,IGNORE_JOBS,SPEC_NODES", 16),
        ReservedNodes("two", 1796032722, 1796032726, "gpu1", "IGNORE_JOBS,SPEC_NODES", 16),
        ReservedNodes("two", 1796032726, 1796033322, "gpu[1-2]", "IGNORE_JOBS,SPEC_NODES", 32),
    )
    assert not found.bad


def test_shown_reservations_are_read_and_a_bad_one_is_counted() -> None:
    """With the reason, and the others are there."""
    found = parse_shown_reservations(SHOWN)
    assert found.rows == (ReservedNodes("fan", 1796032564, 1796033164, "gpu2", "MAINT,IGNORE_JOBS,SPEC_NODES", 16),)
    assert (found.bad, found.error[:16]) == (1, "reservation odd:")


def test_a_file_names_its_columns_and_has_a_zone() -> None:
    """Dates without an offset are those of the zone; a file without a needed column says which and what to do."""
    text = "TimeEnd|TimeStart|State|NodeName\nUnknown|2026-11-30T10:00:00|down*|a\n"
    assert parse_events(text, zone=ZoneInfo("Europe/Oslo")).rows == (NodeOutage("a", 1796029200, None, "down*"),)
    with pytest.raises(ParseError, match=r"does not name TimeEnd: use format=NodeName,TimeStart,TimeEnd,State"):
        parse_events("NodeName|TimeStart|State\n")
    with pytest.raises(ParseError, match="does not name Flags, NodeNames"):
        parse_reserved("Cluster|Name|TRES|TimeStart|TimeEnd|UnusedWall\n")


def test_bad_rows_lose_nothing_else() -> None:
    """Cut, without a time, reversed: the good row is there, the others are counted or are no outage."""
    text = "a|5\n\0\nb|x|6|DOWN\nc|9|8|DOWN\nd||7|DOWN\ne|1|2|DOWN|more\n"
    found = parse_events(text, EVENT)
    assert (found.rows, found.bad) == ((NodeOutage("e", 1, 2, "DOWN"),), 4)
    assert found.error.startswith("line 1:")


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=200))
def test_any_text_is_read_or_rejected(text: str) -> None:
    """No other error than the one with the reason."""
    assert parse_events(text, EVENT).rows is not None
    assert parse_reserved(text, RESERVATION).rows is not None
    assert parse_shown_reservations(f"ReservationName={text}").rows is not None
