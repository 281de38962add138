"""When slurmctld did what, from its log, in milliseconds."""

from pathlib import Path

import pytest

from gpuwaste.core.errors import ParseError, StoreError
from gpuwaste.sim.real.instants import (
    BACKFILL,
    ENDED,
    FREED,
    FULL,
    MAIN,
    STARTED,
    SUBMITTED,
    TESTED,
    ControllerInstant,
    read_instants,
    read_instants_csv,
    read_log,
    write_instants,
)

LOG = b"""[1970-01-01T00:01:39.990] _slurm_rpc_submit_batch_job: JobId=7 InitPrio=4294901757 usec=25460
[1970-01-01T00:01:40.114] debug:  sched: Running job scheduler for default depth.
[1970-01-01T00:01:40.131] sched: Allocate JobId=7 NodeList=g1 #CPUs=2 Partition=gpu
[1970-01-01T00:01:41.000] sched/backfill: _attempt_backfill: beginning
[1970-01-01T00:01:41.002] debug:  sched/backfill: _attempt_backfill: 3 jobs to backfill
[1970-01-01T00:01:41.005] sched/backfill: _attempt_backfill: BACKFILL: test for JobId=8 Prio=1 Partition=gpu
[1970-01-01T00:01:42.001] sched/backfill: _start_job: Started JobId=8 in gpu on g2
[1970-01-01T00:02:11.002] sched/backfill: _attempt_backfill: no jobs to backfill
[1970-01-01T00:02:40.000] TRACE_JOBS: deallocate_nodes: JobId=7
[1970-01-01T00:02:40.070] TRACE_JOBS: cleanup_completing: JobId=7
[1970-01-01T00:02:43.414] debug:  sched: Running job scheduler for full queue.
[1970-01-01T00:02:44.414] sched: Allocate JobId=2 NodeList=g1 #CPUs=2 Partition=gpu
"""
ROWS = {7: 0, 8: 1}
FOUND = [
    ControllerInstant(1_099_990, SUBMITTED, 0),
    ControllerInstant(1_100_114, MAIN),
    ControllerInstant(1_100_131, STARTED, 0),
    ControllerInstant(1_101_002, BACKFILL),
    ControllerInstant(1_101_005, TESTED, 1),
    ControllerInstant(1_102_001, STARTED, 1),
    ControllerInstant(1_160_000, ENDED, 0),
    ControllerInstant(1_160_070, FREED, 0),
    ControllerInstant(1_163_414, FULL),
]


def test_instants_of_a_log() -> None:
    """Passes, cycles with jobs, and what became of the run's jobs are instants of the trace's clock; no more is."""
    assert read_instants(LOG, ROWS, 1000) == FOUND


def test_start_by_backfill_in_the_log_of_26_05() -> None:
    """It is a line of DebugFlags=Hetjob there."""
    log = LOG.replace(b"_start_job: Started", b"_start_job: HETJOB: Started")
    assert log != LOG
    assert read_instants(log, ROWS, 1000) == FOUND


def test_a_log_in_whole_seconds_is_read() -> None:
    """Without milliseconds an instant is at the beginning of its second."""
    line = b"[1970-01-01T00:01:40] debug:  sched: Running job scheduler for full queue."
    assert read_instants(line, {}) == [ControllerInstant(100_000, FULL)]


def test_lines_that_are_no_lines_of_a_log_are_left_out() -> None:
    """Empty, cut, binary and impossible lines, and hostile numbers, give no instant."""
    text = b"sched: Running job scheduler for full queue."
    bad = b"\0\xff\n[1970-01-01T00:01:40.114\n[1970-13-01T00:00:00] " + text + b"\n" + text + b"\n[]" + b"x" * 10_000
    huge = b"\n[1970-01-01T00:01:40.114] TRACE_JOBS: cleanup_completing: JobId=" + b"7" * 10_000
    assert read_instants(b"", ROWS) == read_instants(bad + huge, ROWS) == []


def test_a_csv_gives_back_what_was_written(tmp_path: Path) -> None:
    """The instants of a run are kept in a file of rows."""
    write_instants(tmp_path / "p.csv", FOUND)
    assert read_instants_csv(tmp_path / "p.csv") == FOUND


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "line 1"),
        ("a,b\n", "line 1"),
        ("instant_ms,kind,row\n1,main,\nx,main,\n", "line 3"),
        ("instant_ms,kind,row\n1,main,4\n", "line 2"),
        ("instant_ms,kind,row\n1,freed,\n", "line 2"),
    ],
)
def test_a_file_that_is_none_is_named(tmp_path: Path, text: str, words: str) -> None:
    """A file of other columns or with a row that is no instant is one error with its line."""
    (tmp_path / "p.csv").write_text(text)
    with pytest.raises(ParseError, match=words):
        read_instants_csv(tmp_path / "p.csv")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """A file that is not there is one error with its name."""
    with pytest.raises(StoreError, match=r"p\.csv: cannot be read"):
        read_instants_csv(tmp_path / "p.csv")


def test_a_log_over_the_bound_is_cut_aloud(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """What is beyond is not read, and one line names the file; a log of exactly the bound is complete."""
    log = tmp_path / "slurmctld.log"
    log.write_bytes(LOG)
    rows = {7: 0, 8: 1}
    assert read_log(log, rows, most_b=len(LOG)) == read_instants(LOG, rows)
    assert not caplog.records
    first = LOG.index(b"\n") + 1
    assert read_log(log, rows, most_b=first) == read_instants(LOG[:first], rows)
    (record,) = caplog.records
    assert f"{log}: more than {first} bytes" in record.getMessage()
    assert read_log(tmp_path / "none", rows) == []
