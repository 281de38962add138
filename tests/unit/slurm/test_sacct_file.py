"""Files of `sacct -P`: their columns by name, and cuts between runs."""

from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.public_data import public

from gpuwaste.core.errors import UsageError
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.accounting.sacct_file import columns_of, cut_pages, header_columns
from gpuwaste.slurm.accounting.sacct_rows import BadRow, parse_sacct

COLUMNS = ("JobIDRaw", "JobName", "Submit", "Start", "End", "ElapsedRaw", "State", "MaxRSS")
ROW = b"%d|%s|1700000000|1700000010|1700000020|10|COMPLETED|\n"


def fixture(name: str) -> bytes:
    return public(f"fixtures/{name}").read_bytes()


def test_columns_are_known_by_any_spelling() -> None:
    """Case and width do not matter; columns that say the same stand in for one that is not there."""
    assert columns_of(["jobidraw%20", "submit", "NCPUS", "Timelimit"]) == (
        "JobIDRaw", "Submit", "AllocCPUS", "TimelimitRaw",
    )  # fmt: skip
    assert columns_of(["JobID", "Submit"]) == ("JobIDRaw", "Submit")
    both = columns_of(["JobID", "JobIDRaw", "Submit", "NCPUS", "AllocCPUS", "Comment"])
    assert both == ("JobID", "JobIDRaw", "Submit", "ncpus", "AllocCPUS", "Comment")


def test_columns_without_identity_are_refused() -> None:
    """A file that cannot be keyed is refused with what to ask for."""
    with pytest.raises(UsageError, match="lack Submit"):
        columns_of(["JobID", "State"])


def test_a_first_row_is_no_header() -> None:
    """A header has names alone."""
    assert header_columns(b"JobID|Submit|State\n", b"|") == ("JobIDRaw", "Submit", "State")
    assert header_columns(b"7|1700000000|COMPLETED\n", b"|") is None
    assert header_columns(b"JobID|2024-01-01|x\n", b"|") is None
    assert header_columns(b"", b"|") is None


LINES = st.lists(
    st.one_of(
        st.builds(lambda i, n: ROW % (i, n), st.integers(1, 9), st.sampled_from([b"a", b"a\nb", b"x|y", b"\n7|z"])),
        st.sampled_from([b"3.batch|batch|1|1|1|1|COMPLETED|5K\n", b"cut|off\n", b"\n", b"8|cut\n", b"\xff\xfe|\n"]),
    ),
    max_size=25,
)


def rows_of(data: bytes, line: int) -> list[JobRecord | tuple[int, str]]:
    return [
        (row.line + line - 1, row.reason) if isinstance(row, BadRow) else row
        for row in parse_sacct(data.splitlines(keepends=True), "gw", COLUMNS, b"|")
    ]


@given(LINES, st.integers(1, 400))
def test_pages_one_by_one_give_what_the_whole_gives(parts: list[bytes], page_b: int) -> None:
    """Wherever the cuts fall, the runs and the bad rows with their lines are the same, and no byte is lost."""
    data = b"".join(parts)
    lines = data.splitlines(keepends=True)
    cuts = list(cut_pages(lines, COLUMNS, b"|", page_b))
    assert b"".join(cut.data for cut in cuts) == data
    assert all(data[cut.position : cut.position + len(cut.data)] == cut.data for cut in cuts)
    assert [row for cut in cuts for row in rows_of(cut.data, cut.line)] == rows_of(data, 1)


PRINTED = ("JobIDRaw", "Submit", "State", "JobName")
PRINTED_LINES = st.lists(
    st.sampled_from(
        [b"7|1|COMPLETED|a\n", b"8|1|FAILED|b|c\n", b"3_1|1|FAILED|x\n",
         b"3_1.batch|1|FAILED|batch\n", b"4+1|1|FAILED|\n", b"JobID|Submit|State|JobName\n",
         b"more\n", b"\n", b"7.0|1|COMPLETED|s\n"]
    ),
    max_size=25,
)  # fmt: skip


@given(PRINTED_LINES, st.integers(1, 200))
def test_pages_of_files_with_printed_ids_give_what_the_whole_gives(lines: list[bytes], page_b: int) -> None:
    """JobID alone and the name last: rows of arrays, steps and headers of joined files, wherever the cuts fall."""
    found = []
    for cut in cut_pages(lines, PRINTED, b"|", page_b):
        read = parse_sacct(cut.data.splitlines(keepends=True), "gw", PRINTED, b"|")
        found += [(row.line + cut.line - 1, row.raw) if isinstance(row, BadRow) else row for row in read]
    whole = parse_sacct(lines, "gw", PRINTED, b"|")
    assert found == [(row.line, row.raw) if isinstance(row, BadRow) else row for row in whole]


def test_steps_stay_with_their_job() -> None:
    """A page never begins with a step."""
    step = b"1.batch|batch|1|1|1|1|COMPLETED|5K\n"
    lines = [ROW % (1, b"a"), step, step, ROW % (2, b"b"), step.replace(b"1.", b"2.")]
    assert [cut.line for cut in cut_pages(lines, COLUMNS, b"|", 1)] == [1, 4]


@pytest.mark.parametrize(
    ("name", "delimiter", "runs", "bad"),
    [
        ("slurm2sql/test-data1.csv", b"|", 2, 0),
        ("slurm2sql/test-data2.csv", b"|", 2, 0),
        ("gcm_slurm/sample-sacct-multiple-multiline.txt", b"|#", 4, 2),
        ("gcm_slurm/sample-sacct-fake-line-break.txt", b"|#", 2, 2),
        ("gcm_slurm/sample-sacct-output-invalid-utf8.txt", b"|", 2, 6),
        ("gcm_slurm/sample-sacct-output-with-invalid-lines.txt", b"|", 0, 1),
    ],
)
def test_files_of_others_are_read(name: str, delimiter: bytes, runs: int, bad: int) -> None:
    """Real output with other columns, newlines in names and bytes that are no UTF-8; what is bad is counted."""
    header, *lines = fixture(name).splitlines(keepends=True)
    columns = header_columns(header, delimiter)
    assert columns is not None
    rows = list(parse_sacct(lines, "gw", columns, delimiter, ZoneInfo("Europe/Helsinki")))
    assert (sum(isinstance(r, JobRecord) for r in rows), sum(isinstance(r, BadRow) for r in rows)) == (runs, bad)


def test_older_columns_say_the_same() -> None:
    """Timelimit, Elapsed and NCPUS stand in for their raw forms, the request is put together from its columns."""
    header, *lines = fixture("slurm2sql/test-data1.csv").splitlines(keepends=True)
    job = next(parse_sacct(lines, "gw", header_columns(header, b"|") or (), b"|", ZoneInfo("Europe/Helsinki")))
    assert isinstance(job, JobRecord)
    assert (job.time_limit_s, job.elapsed_s, job.cpus, job.state) == (5 * 86400, 12805, 2, "CANCELLED")
    assert job.end is not None
    assert job.start is not None
    assert job.end - job.start == job.elapsed_s
    assert job.req_tres.startswith("cpu=2,mem=")
