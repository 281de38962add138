"""Standard Workload Format becomes runs, rows set aside, and what the log knows."""

import lzma
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.accounting.sacct_rows import BadRow
from gpuwaste.slurm.formats.log_file import read_lines
from gpuwaste.slurm.formats.swf_log import SwfFacts, read_swf

ROW: dict[str, object] = {
    "job": 7, "submit": 1000, "wait": 50, "run": 300, "procs": 4, "cpu": 20, "mem": 9, "rprocs": 8, "limit": 600,
    "rmem": 2048, "status": 1, "user": 12, "group": 3, "exe": 5, "queue": 2, "part": 1, "prev": -1, "think": -1,
}  # fmt: skip


def row(**changes: object) -> bytes:
    return (" ".join(str(v) for v in (ROW | changes).values()) + "\n").encode()


def read(*lines: bytes) -> tuple[SwfFacts, list[JobRecord | BadRow]]:
    facts, rows = read_swf(lines, "log")
    return facts, list(rows)


def one(**changes: object) -> JobRecord:
    _, (record,) = read(row(**changes))
    assert isinstance(record, JobRecord), record
    return record


def test_every_column_has_its_place() -> None:
    """Numbers become texts, KB a processor becomes the job's memory, processors used are known at the start."""
    job = one()
    assert (job.job_id, job.submit, job.start, job.end, job.elapsed_s) == (7, 1000, 1050, 1350, 300)
    assert (job.user, job.account, job.group, job.name, job.qos, job.partition) == ("12", "3", "3", "5", "2", "1")
    assert (job.req_tres, job.cpus, job.time_limit_s, job.total_cpu_s) == ("cpu=8,mem=16384K", 4, 600, 80.0)
    assert job.state == "COMPLETED"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"status": 0}, {"state": "FAILED"}),
        ({"status": 5}, {"state": "CANCELLED", "start": 1050}),
        ({"status": 5, "run": 0}, {"start": None, "end": 1050, "elapsed_s": None, "cpus": None}),
        ({"status": 5, "run": -1, "wait": -1}, {"start": None, "end": 1000}),
        ({"status": -1}, {"state": ""}),
        ({"status": 9}, {"state": ""}),
        ({"wait": -1}, {"start": 1000, "end": 1300}),
        ({"run": -1}, {"start": 1050, "end": None, "elapsed_s": None}),
        ({"run": -1, "wait": -1}, {"start": None, "end": None}),
        ({"rprocs": -1}, {"req_tres": ""}),
        ({"rmem": -1}, {"req_tres": "cpu=8"}),
        ({"limit": -1, "user": -1, "queue": 0}, {"time_limit_s": None, "user": "", "qos": "0"}),
        ({"cpu": "20.5"}, {"total_cpu_s": 80.0}),
        (
            dict.fromkeys(list(ROW)[2:], -1),
            {"state": "", "start": None, "cpus": None, "req_tres": "", "name": "", "total_cpu_s": None},
        ),
    ],
)
def test_what_is_not_known_stays_so(changes: dict[str, object], expected: dict[str, object]) -> None:
    """-1 is never an amount, and a job that was cancelled before it ran never started."""
    job = one(**changes)
    assert {name: getattr(job, name) for name in expected} == expected


def test_the_log_tells_what_it_knows() -> None:
    """Users, requests, waits and statuses are counted; parts of jobs are no jobs; disorder is seen."""
    facts, rows = read(
        b"; UnixStartTime: 1000000\n;Note: a: b\n",
        row(),
        row(job=8, user=-1, rprocs=-1, limit=-1, rmem=-1, submit=900),
        row(job=8, status=2, submit=-1),
        row(job=9, status=7),
        b"\n",
    )
    assert [r.submit for r in rows if isinstance(r, JobRecord)] == [1001000, 1000900, 1001000]
    assert (facts.rows, facts.users, facts.requested_procs, facts.requested_time) == (3, 2, 2, 2)
    assert (facts.requested_memory, facts.waits, facts.statuses, facts.partial, facts.other_status) == (2, 3, 2, 1, 1)
    assert (facts.unsorted, facts.waits_known, facts.end_rule, facts.origin) == (1, True, "accounting", 1000000)


def test_a_log_without_waits_says_so() -> None:
    """Its starts are assumed, and the rule by which its ends are known is told."""
    facts, _ = read(row(wait=-1), row(wait=-1, job=8))
    assert (facts.waits_known, facts.end_rule, facts.assumed_starts, facts.origin) == (False, "submit + run", 2, None)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"1 2 3\n", "3 columns, but SWF has 18"),
        (row(run="x"), "'x' is not a number"),
        (row(run="inf"), "'inf' is not a number"),
        (row(run="9" * 400), "too large"),
        (row(submit=-1), "no submit time"),
        (row(job=-1), "no job number"),
        (b"\xff\xfe\x00\n", "1 columns"),
    ],
)
def test_a_row_that_cannot_be_read_is_set_aside(line: bytes, reason: str) -> None:
    """The next row is read all the same, and the bad one has its line and its reason."""
    facts, (first, second) = read(line, row())
    assert isinstance(first, BadRow)
    assert isinstance(second, JobRecord)
    assert reason in first.reason
    assert (first.line, facts.bad, facts.rows) == (1, 1, 1)


@pytest.mark.long
def test_a_file_that_is_cut_off_gives_its_rows_and_says_where(tmp_path: Path) -> None:
    """The rows before the cut are kept; the cut is the last bad row."""
    whole = lzma.compress(b"".join(row(job=i) for i in range(20000)))
    path = tmp_path / "log.swf.xz"
    path.write_bytes(whole[: len(whole) * 3 // 4])
    facts, rows = read_swf(read_lines(path), "log")
    *jobs, last = rows
    assert isinstance(last, BadRow)
    assert "cut off or damaged" in last.reason
    assert len(jobs) == facts.rows == last.line - 1 > 100


@given(st.lists(st.binary(max_size=80) | st.just(row()) | st.just(b"; UnixStartTime: " + b"9" * 30), max_size=8))
def test_no_bytes_raise(lines: list[bytes]) -> None:
    """Any damage gives records and bad rows."""
    for record in read(*lines)[1]:
        assert isinstance(record, JobRecord | BadRow)
