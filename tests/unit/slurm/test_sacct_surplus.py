"""Separators, newlines and marks in the free text of sacct's files."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.accounting.sacct_file import columns_of, header_columns
from gpuwaste.slurm.accounting.sacct_row import settle
from gpuwaste.slurm.accounting.sacct_rows import BadRow, parse_sacct

FIXTURES = Path(__file__).parents[2] / "fixtures" / "sacct"
MIDDLE = ("JobIDRaw", "JobName", "Submit", "State", "ExitCode")
LAST = ("JobIDRaw", "Submit", "State", "ExitCode", "JobName")
BOTH = ("JobIDRaw", "JobName", "Submit", "State", "SubmitLine")
BLOCK = ("JobIDRaw", "Submit", "JobName", "SubmitLine", "AdminComment", "ExitCode")
NAMES = st.text(st.sampled_from("a|b;\n 7="), max_size=12)


def rows(data: bytes, columns: tuple[str, ...]) -> list[JobRecord | BadRow]:
    return list(parse_sacct(data.splitlines(keepends=True), "gw", columns, b"|"))


@pytest.mark.parametrize(
    ("line", "columns", "name", "submit_line"),
    [
        ("7|a|b|1700000000|COMPLETED|0:0", MIDDLE, "a|b", ""),
        ("7|||1700000000|COMPLETED|0:0", MIDDLE, "|", ""),
        ("7|1700000000|COMPLETED|0:0|a|b|", LAST, "a|b|", ""),
        ("7|a|b|1700000000|COMPLETED|sbatch --wrap x|y", BOTH, "a|b", "sbatch --wrap x|y"),
        ("7|1700000000|a|b|sbatch --wrap x|y|moved|0:0", BLOCK, "a|b", "sbatch --wrap x|y"),
        ("7|1700000000|a|b||moved|0:0", BLOCK, "a|b", ""),
        ("7|1700000000|a|/usr/bin/srun x|y|z|moved|0:0", BLOCK, "a", "/usr/bin/srun x|y|z"),
    ],
)
def test_surplus_separators_belong_to_the_free_text(
    line: str, columns: tuple[str, ...], name: str, submit_line: str
) -> None:
    """The other columns keep their places, wherever the names stand."""
    (job,) = rows(line.encode() + b"\n", columns)
    assert isinstance(job, JobRecord), job
    assert (job.job_id, job.submit, job.name, job.submit_line) == (7, 1700000000, name, submit_line)


@pytest.mark.parametrize(
    "line",
    [
        "7|a|b|1700000000|COMPLETED|1700000000|COMPLETED|x",  # the name may end at either
        "7|a|b|c|d|e|f",  # no time stands anywhere
    ],
)
def test_a_row_that_fits_in_several_ways_or_none_is_set_aside(line: str) -> None:
    """It is never guessed."""
    (bad,) = rows(line.encode() + b"\n", BOTH)
    assert isinstance(bad, BadRow)
    assert "fields instead of 5" in bad.reason


def test_separators_with_no_free_text_set_the_row_aside() -> None:
    """No column may take them."""
    (bad,) = rows(b"7|alice|x|1700000000\n", ("JobIDRaw", "User", "Submit"))
    assert isinstance(bad, BadRow)


def test_lines_after_a_last_name_belong_to_it() -> None:
    """They begin no row; the next row is read."""
    first, second = rows(b"7|1700000000|COMPLETED|0:0|a\nb|c\n\nd\n8|1700000000|FAILED|1:0|x\n", LAST)
    assert isinstance(first, JobRecord)
    assert isinstance(second, JobRecord)
    assert (first.name, second.job_id, second.name) == ("a\nb|c\n\nd", 8, "x")


PRINTED_LAST = ("JobIDRaw", "Submit", "State", "AllocTRES", "JobName")  # JobIDRaw for JobID, as columns_of() has it
PRINTED_MIDDLE = ("JobIDRaw", "JobName", "Submit", "State", "AllocTRES")
PRINTED = ("101_1", "101_2.batch", "103+0", "103+1.0", "104_[5-9%2]", "105_[1,3,...]")


def printed_row(printed: str, name: str, columns: tuple[str, ...]) -> str:
    values = {"JobIDRaw": printed, "Submit": "1700000000", "State": "COMPLETED", "AllocTRES": "gres/gpu=8"}
    return "|".join((values | {"JobName": name})[column] for column in columns) + "\n"


@pytest.mark.parametrize("columns", [PRINTED_LAST, PRINTED_MIDDLE], ids=["name last", "name in the middle"])
@pytest.mark.parametrize("printed", PRINTED)
def test_rows_of_arrays_without_a_raw_id_are_counted(columns: tuple[str, ...], printed: str) -> None:
    """A file with JobID alone: such rows are no part of the name before them, each is counted with its id."""
    names = [("100", "plain"), (printed, "array"), (printed, "two\nlines|x"), ("102", "a\nb")]
    data = "".join(printed_row(number, name, columns) for number, name in names)
    found = rows(data.encode(), columns)
    assert [(row.job_id, row.name) for row in found if isinstance(row, JobRecord)] == [(100, "plain"), (102, "a\nb")]
    assert [(row.line, row.reason) for row in found if isinstance(row, BadRow)] == [
        (line, f"JobID {printed} of an array or het job has no job number: add JobIDRaw to --format") for line in (2, 3)
    ]


def test_printed_ids_in_a_name_begin_no_row_where_raw_ids_are_there() -> None:
    """With both columns a line of a name that looks like an array's row is text."""
    columns = ("JobIDRaw", "JobID", "Submit", "JobName")
    (run,) = rows(b"7|7|1700000000|a\n101_1|101_1|1700000000|b\n", columns)
    assert isinstance(run, JobRecord)
    assert run.name == "a\n101_1|101_1|1700000000|b"


@pytest.mark.parametrize("header", ["JobIDRaw|Submit|State|AllocTRES|JobName", "JobID|Submit|State|AllocTRES|JobName"])
def test_a_header_in_the_middle_ends_the_row_before_it(header: str) -> None:
    """Two files put together: the last name of the first one is its own."""
    lines = (printed_row("100", "plain", PRINTED_LAST), f"{header}\n", printed_row("101", "other", PRINTED_LAST))
    found = rows("".join(lines).encode(), PRINTED_LAST)
    assert [row.name for row in found if isinstance(row, JobRecord)] == ["plain", "other"]
    assert len(found) == len(lines) - 1


@given(st.lists(NAMES, min_size=1, max_size=4))
def test_any_name_in_the_middle_comes_back(names: list[str]) -> None:
    """Names with separators and newlines, in a column that others follow, cost neither their run nor the next.

    But for names with a line that begins as a row does, by a separator of its own or by the one that follows the name.
    """
    harmless = [name for name in names if not re.search(r"\n7+\|", f"{name}|")]
    data = "".join(f"{at}|{name}|1700000000|COMPLETED|0:0\n" for at, name in enumerate(harmless, 1))
    found = rows(data.encode(), MIDDLE)
    told = [(row.job_id, row.name) for row in found if isinstance(row, JobRecord)]
    lost = [name for at, name in enumerate(harmless, 1) if (at, name) not in told]
    assert all("\n" in name and name.count("|") > 0 for name in lost), (
        "a newline and separators may leave no single way"
    )
    assert len(told) + len([row for row in found if isinstance(row, BadRow)]) >= len(harmless)


@given(st.lists(st.sampled_from(["", "a", "7", "1700000000", "COMPLETED", "sbatch x", "0:0"]), max_size=300))
def test_settling_is_bounded_and_loses_nothing(parts: list[str]) -> None:
    """Whatever the parts, the answer has a text for each column and every part in its place, or there is none."""
    columns = ("JobIDRaw", "JobName", "Submit", "SubmitLine", "State", "comment")
    values = settle(parts, columns, "|")
    assert values is None or (len(values) == len(columns) and "|".join(values) == "|".join(parts))


@pytest.mark.parametrize(
    ("name", "runs", "bad"),
    [
        ("bom_before_the_header.txt", 2, 0),
        ("names_with_separators_and_newlines.txt", 3, 0),
        ("req_mem_with_the_flag_of_mem_per_cpu.txt", 3, 0),
    ],
)
def test_odd_files_are_read(name: str, runs: int, bad: int) -> None:
    """Each sample is named for its oddity."""
    header, *lines = (FIXTURES / name).read_bytes().splitlines(keepends=True)
    columns = header_columns(header, b"|")
    assert columns is not None
    found = list(parse_sacct(lines, "gw", columns, b"|"))
    assert (sum(isinstance(r, JobRecord) for r in found), sum(isinstance(r, BadRow) for r in found)) == (runs, bad)


def test_the_flag_of_mem_per_cpu_is_no_amount() -> None:
    """2147486448Mn is 2,800 MiB for each processor, as with 64 bits; an amount that was rounded with it is unknown."""
    header, *lines = (FIXTURES / "req_mem_with_the_flag_of_mem_per_cpu.txt").read_bytes().splitlines(keepends=True)
    jobs = [
        job for job in parse_sacct(lines, "gw", header_columns(header, b"|") or (), b"|") if isinstance(job, JobRecord)
    ]
    assert [job.mem_req_b for job in jobs] == [4 * 2800 * 2**20, 8 * 2800 * 2**20, None]
    assert [job.req_tres for job in jobs] == ["cpu=4,mem=11200M,node=1", "cpu=8,mem=22400M,node=2", "cpu=1,node=1"]


def test_a_column_of_the_cluster_is_known() -> None:
    """By any spelling."""
    assert columns_of(["cluster", "JobID", "Submit"]) == ("Cluster", "JobIDRaw", "Submit")
