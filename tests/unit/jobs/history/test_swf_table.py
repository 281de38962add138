"""Logs in Standard Workload Format as job tables."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from tests.public_data import public

from gpuwaste.core.errors import NoDataError, UsageError
from gpuwaste.jobs.history.outcome import Outcome
from gpuwaste.jobs.history.swf_table import swf_table

ROW = "{job} {submit} 5 30 4 -1 -1 4 600 -1 {status} 12 3 -1 -1 -1 -1 -1\n"


def test_a_log_becomes_a_sorted_table(tmp_path: Path) -> None:
    """Unsorted rows are sorted, a run told twice counts once and is reported."""
    rows = [ROW.format(job=2, submit=90, status=0), ROW.format(job=1, submit=10, status=1)]
    path = tmp_path / "a.swf.gz"
    path.write_bytes(gzip.compress("".join([*rows, rows[0], "x\n"]).encode()))
    table, facts, bad = swf_table(path)
    assert table.job_id.tolist() == [1, 2]
    assert table.outcome.tolist() == [Outcome.COMPLETED, Outcome.FAILED]
    assert (table.end_rule, facts.rows, facts.bad) == ("accounting", 3, 2)
    assert ["twice" in row.reason for row in bad] == [True, False]


def test_a_file_without_jobs_is_no_data(tmp_path: Path) -> None:
    """A binary file, an empty one and one that is not there each give one line."""
    path = tmp_path / "a.swf"
    path.write_bytes(bytes(range(256)) * 20)
    with pytest.raises(NoDataError, match="contains no job: line 1"):
        swf_table(path)
    path.write_bytes(b"")
    with pytest.raises(NoDataError, match="contains no job: is it"):
        swf_table(path)
    with pytest.raises(UsageError, match="cannot be read"):
        swf_table(tmp_path / "none.swf")


@pytest.mark.long
def test_a_real_log_is_read_whole() -> None:
    """KTH-SP2: all its rows, both statuses, waits and users known."""
    table, facts, bad = swf_table(public("swf/KTH-SP2-1996-2.1-cln.swf.xz"))
    assert (len(table), facts.rows, facts.bad, bad) == (28476, 28476, 0, ())
    assert np.bincount(table.outcome).tolist() == [0, 20530, 7946]
    assert table.end_rule == "accounting"
    assert table.submit[0] == 843480031 + 599850


def test_a_log_without_waits_has_its_rule() -> None:
    """lublin_256 knows no users, no requests and no waits."""
    table, facts, _ = swf_table(public("swf/lublin_256.swf.xz"))
    assert (facts.users, facts.requested_time, facts.requested_procs, facts.waits) == (0, 0, 0, 0)
    assert not table.wait_known
