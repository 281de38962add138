"""When slurmctld's main loop and backfill ran, from its log."""

from pathlib import Path

import pytest

from gpuwaste.core.errors import ParseError, StoreError
from gpuwaste.sim.real.passes import BACKFILL, FULL, MAIN, Pass, read_passes, read_passes_csv, write_passes

LOG = b"""[1970-01-01T00:01:40.114] debug:  sched: Running job scheduler for default depth.
[1970-01-01T00:01:41.000] sched/backfill: _attempt_backfill: beginning
[1970-01-01T00:01:41.002] debug:  sched/backfill: _attempt_backfill: 3 jobs to backfill
[1970-01-01T00:02:11.002] sched/backfill: _attempt_backfill: no jobs to backfill
[1970-01-01T00:02:43.414] debug:  sched: Running job scheduler for full queue.
[1970-01-01T00:02:44.414] sched: Allocate JobId=2 NodeList=g1 #CPUs=2 Partition=gpu
"""


def test_passes_and_cycles_of_a_log() -> None:
    """Each pass and each cycle with jobs is an instant, moved to the trace's clock; other lines are none."""
    assert read_passes(LOG, 1000) == [Pass(1100, MAIN), Pass(1101, BACKFILL), Pass(1163, FULL)]


def test_lines_that_are_no_lines_of_a_log_are_left_out() -> None:
    """Empty, cut, binary and impossible lines give no pass."""
    text = b"sched: Running job scheduler for full queue."
    bad = b"\0\xff\n[1970-01-01T00:01:40.114\n[1970-13-01T00:00:00] " + text + b"\n" + text + b"\n[]" + b"x" * 10_000
    assert read_passes(b"") == read_passes(bad) == []


def test_a_csv_gives_back_what_was_written(tmp_path: Path) -> None:
    """The passes of a run are kept in a file of rows."""
    passes = read_passes(LOG)
    write_passes(tmp_path / "p.csv", passes)
    assert read_passes_csv(tmp_path / "p.csv") == passes


@pytest.mark.parametrize(
    ("text", "words"), [("", "line 1"), ("a,b\n", "line 1"), ("instant,kind\n1,main\nx,main\n", "line 3")]
)
def test_a_file_that_is_none_is_named(tmp_path: Path, text: str, words: str) -> None:
    """A file of other columns or with a row that is no pass is one error with its line."""
    (tmp_path / "p.csv").write_text(text)
    with pytest.raises(ParseError, match=words):
        read_passes_csv(tmp_path / "p.csv")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """A file that is not there is one error with its name."""
    with pytest.raises(StoreError, match=r"p\.csv: cannot be read"):
        read_passes_csv(tmp_path / "p.csv")
