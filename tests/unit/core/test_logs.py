"""The daemons' log: single lines, harmless, equal ones counted, systemd's priorities where systemd reads."""

import io
import logging
import sys

import pytest

from gpuwaste.core.logs import LONGEST, LineHandler, is_journal, one_line, priority


class Rig:
    """A logger of its own with a handler and a clock that stands."""

    def __init__(self) -> None:
        self.now = 0.0
        self.stream = io.StringIO()
        self.handler = LineHandler(self.stream, mono_s=lambda: self.now)
        self.log = logging.Logger("gpuwaste.test")  # noqa: LOG001 a logger that no other test shares
        self.log.addHandler(self.handler)

    @property
    def lines(self) -> list[str]:
        return self.stream.getvalue().splitlines()


def test_the_same_line_within_a_minute_is_counted_and_the_count_is_told() -> None:
    """A thousand equal warnings are one line, and one more with the number once the minute is over."""
    rig = Rig()
    for _ in range(1000):
        rig.log.warning("disk full: %s", "/var")
    rig.log.warning("another")
    assert rig.lines == ["WARNING gpuwaste.test: disk full: /var", "WARNING gpuwaste.test: another"]
    rig.now = 61.0
    rig.log.warning("disk full: %s", "/var")
    assert rig.lines[2:] == [
        "WARNING gpuwaste.test: disk full: /var (and 999 times more within a minute)",
        "WARNING gpuwaste.test: disk full: /var",
    ]


def test_a_count_is_not_lost_at_the_end_nor_under_many_different_lines() -> None:
    """Closing tells what is left; where too many lines would have to be remembered, the oldest is told first."""
    rig = Rig()
    for _ in range(3):
        rig.log.info("one")
    for number in range(300):
        rig.log.info("line %d", number)
    assert "INFO gpuwaste.test: one (and 2 times more within a minute)" in rig.lines
    rig.log.info("line 299")
    rig.handler.close()
    assert rig.lines[-1] == "INFO gpuwaste.test: line 299 (and 1 times more within a minute)"


def test_what_others_wrote_cannot_make_lines_or_move_a_terminal() -> None:
    """Line breaks, escapes, C1 codes and marks of direction become visible; an endless text is cut."""
    rig = Rig()
    rig.log.warning("job %s", "a\nERROR forged\x1b[2J\x9b\u202e\u2028 ü")
    assert rig.lines == ["WARNING gpuwaste.test: job a\\nERROR forged\\x1b[2J\\x9b\\u202e\\u2028 ü"]
    rig.log.warning("x" * 100_000)
    assert len(rig.lines[1]) <= LONGEST + len("WARNING ")


def test_a_defect_is_one_line_with_the_way_to_it() -> None:
    """log.exception gives the error, and file, line and function of each frame, in the same line."""
    rig = Rig()

    def inner() -> None:
        raise ValueError("wrong\nhere")

    try:
        inner()
    except ValueError:
        rig.log.exception("defect in the loop")
    (line,) = rig.lines
    assert line.startswith("ERROR gpuwaste.test: defect in the loop: ValueError: wrong\\nhere (at test_logs.py:")
    assert line.endswith(" inner)")


def test_a_record_that_cannot_be_formatted_does_not_raise(capsys: pytest.CaptureFixture[str]) -> None:
    """A defect in a log call stays without consequence but for logging's own complaint."""
    rig = Rig()
    rig.log.warning("%d", "no number")
    rig.log.warning("goes on")
    assert rig.lines == ["WARNING gpuwaste.test: goes on"]
    assert "no number" in capsys.readouterr().err


def test_levels_are_syslogs() -> None:
    """Critical is 2, error 3, warning 4, information 6, and what is below 7."""
    levels = (logging.CRITICAL, logging.ERROR, logging.WARNING, logging.INFO, logging.DEBUG)
    assert [priority(level) for level in levels] == [2, 3, 4, 6, 7]
    assert one_line(logging.makeLogRecord({"name": "n", "msg": "m"})) == "n: m"


def test_nonsense_in_journal_stream_is_no_journal(monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty, cut or wrong value, and a stream without a number, are read as: no journal."""
    for value in ("", "1", "a:b", "::", "1:2"):
        monkeypatch.setenv("JOURNAL_STREAM", value)
        assert not is_journal(sys.__stderr__ or io.StringIO())
    assert not is_journal(io.StringIO())
