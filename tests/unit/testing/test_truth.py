"""The comparison that the system tests trust: it must see what is lost, doubled or made up."""

from dataclasses import replace

import pytest

from gpuwaste.testing.simnvml import OracleEvent
from gpuwaste.testing.truth import Key, Row, TruthSpan, compare, observed

KEY: Key = (7, 1000, "gpu1", "GPU-a")
RUN = TruthSpan(1000, 1020)
BUSY = OracleEvent(1000.0, 0.0, 1, 7, 0, None, "gpu1", 0, "GPU-a", "", 50.0, 0, 0, 0.0, True, "start")  # noqa: FBT003 as in a log
EVENTS = [BUSY, replace(BUSY, t_utc=1020.0, mono=20.0, util=0.0, event="end")]


def _row(known: float, unknown: float = 0, pct: int = 50, hours: int = 1) -> Row:
    total = known + unknown
    return Row([0] * hours, t0=1000.0, t1=1000.0 + total, by_pct={pct: known}, unknown={"gap": unknown})


def _wrong(row: Row, *outages: TruthSpan) -> list[str]:
    return compare(KEY, RUN, row, EVENTS, {"gpu1": outages}, edge_s=1.0)


def test_observed_is_a_run_without_its_outages() -> None:
    """Outages inside, at the edges, overlapping and elsewhere are cut out."""
    assert observed(RUN, []) == [RUN]
    assert observed(RUN, [TruthSpan(1005, 1008), TruthSpan(1007, 1010)]) == [
        TruthSpan(1000, 1005),
        TruthSpan(1010, 1020),
    ]
    assert observed(RUN, [TruthSpan(900, 1003), TruthSpan(1019, 2000)]) == [TruthSpan(1003, 1019)]
    assert observed(RUN, [TruthSpan(900, 950)]) == [RUN]
    assert observed(RUN, [TruthSpan(900, 1100)]) == []


def test_what_is_right_is_right() -> None:
    """The whole run known, and an outage of its true length unknown."""
    assert _wrong(_row(20)) == []
    assert _wrong(_row(12, 8), TruthSpan(1004, 1012)) == []


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (_row(10, 10), "at 50 %"),  # observed time that is unknown
        (_row(20, pct=70), "at 50 %"),  # at another level
        (_row(30), "has 30.0 s, the run had 20.0 s"),  # more than there was
        (_row(20, hours=2), "hours stand twice"),
        (replace(_row(20), t1=1040.0), "adds up to"),
    ],
)
def test_what_is_wrong_is_said(row: Row, words: str) -> None:
    """Lost, moved and doubled seconds are each named."""
    assert any(words in text for text in _wrong(row))


def test_a_doubling_inside_an_outage_is_seen() -> None:
    """However long the outages, no level has more seconds than the load program ran at it."""
    assert any("at 50 %" in text for text in _wrong(_row(27), TruthSpan(1001, 1019)))
