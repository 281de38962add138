"""jobcomp's lines and the CSV of a run: whole, cut off, hostile."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwaste.core.errors import ParseError, StoreError
from gpuwaste.sim.real.real_jobs import COLUMNS, Ended, ReplayedOutcome, read_csv, read_ended, write_csv

LINE = (
    "JobId=4 UserId=root(0) GroupId=root(0) Name=wrap JobState=TIMEOUT Partition=gpu TimeLimit=1"
    " StartTime=1970-01-01T00:01:32 EndTime=1970-01-01T00:02:44 NodeList=n[0-1] NodeCnt=2 ProcCnt=2 WorkDir=/w"
    " ReservationName= Tres=cpu=2,mem=4G,node=1,billing=2 Account= QOS= WcKey= Cluster=unknown"
    " SubmitTime=1970-01-01T00:01:20 EligibleTime=1970-01-01T00:01:20 DerivedExitCode=0:0 ExitCode=0:0 \n"
)


def test_a_line_of_jobcomp() -> None:
    """State, instants and nodes of a job that ended; a line that is still being written waits."""
    found, whole = read_ended((LINE + LINE[:40]).encode())
    assert found == [Ended(4, "TIMEOUT", 80, 92, 164, "n[0-1]")]
    assert whole == len(LINE)


def test_a_job_that_never_started_has_no_times_that_are_none() -> None:
    """Unknown and absent instants are None, `(null)` is no node."""
    line = b"JobId=7 JobState=CANCELLED StartTime=Unknown EndTime=None NodeList=(null) SubmitTime=\n"
    assert read_ended(line)[0] == [Ended(7, "CANCELLED", None, None, None, "")]


@given(st.binary(max_size=200))
def test_any_bytes_are_read(data: bytes) -> None:
    """Lines that are no jobs are left out; no byte is read twice or lost."""
    _, whole = read_ended(data)
    assert whole == data.rfind(b"\n") + 1


def test_the_csv_of_a_run_is_read_back(tmp_path: Path) -> None:
    """What is written is read back equal, jobs that did not start included."""
    jobs = [
        ReplayedOutcome(1, 10, Ended(None, "COMPLETED", 11, 20, 30, "n[0-1],n4")),
        ReplayedOutcome(2, 12, Ended(None, "REFUSED"), 'a "quoted", reason'),
    ]
    write_csv(tmp_path / "run.csv", jobs)
    assert read_csv(tmp_path / "run.csv") == jobs


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"a,b\n", "line 1: not a file of gpuwaste simulate run"),
        (",".join(COLUMNS).encode() + b"\n1,2\n", "line 2: not a job"),
        (",".join(COLUMNS).encode() + b"\n1,2,x,4,5,S,n,\n", "line 2: not a job"),
        (b"\xff\xfe\0" * 10, "line 1"),
    ],
)
def test_a_csv_that_is_none(text: bytes, said: str, tmp_path: Path) -> None:
    """Another file, a cut row and binary are one line with the place."""
    (tmp_path / "run.csv").write_bytes(text)
    with pytest.raises(ParseError, match=said):
        read_csv(tmp_path / "run.csv")


def test_a_csv_that_is_not_there(tmp_path: Path) -> None:
    """A missing run is a StoreError."""
    with pytest.raises(StoreError, match=r"run\.csv: cannot be read"):
        read_csv(tmp_path / "run.csv")
