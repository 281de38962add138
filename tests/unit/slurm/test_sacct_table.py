"""The table of a page has the same jobs, with the same values, as the reader of rows one by one."""

from datetime import UTC, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

from hypothesis import example, given
from hypothesis import strategies as st

from gpuwaste.jobs.run_changes import job_row
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.accounting.line_format import NULL, SEPARATOR
from gpuwaste.slurm.accounting.sacct_rows import parse_sacct
from gpuwaste.slurm.accounting.sacct_table import COLUMNS, page_table

D = "|"
NEW_YORK = ZoneInfo("America/New_York")
VALUES: dict[str, tuple[str, ...]] = {
    "JobIDRaw": ("7", "8", "8.batch", "8.0", "9.extern", "07", "x", "\u0667"),
    "JobID": ("", "8", "3_1", "3_[0-4%2]", "4+1", "8.batch", "?"),
    "User": ("alice", "", "b\\xff", "\x1dc", "d\0"),
    "UID": ("1001", ""),
    "Account": ("proj",),
    "State": ("COMPLETED", "CANCELLED by 1001", "RUNNING", "", "NODE_FAI+"),
    "Submit": ("1700000000", "2023-11-05T01:30:00", "Unknown", "soon"),
    "Start": ("1700000100", "1699999000", "2023-11-05T01:40:00", "Unknown", "", "yesterday"),
    "End": ("1700000200", "Unknown", "2023-11-05T01:50:00", ""),
    "Eligible": ("1700000050", "", "now", "9" * 13),
    "ElapsedRaw": ("100", "0", "4200", "", "?"),
    "Suspended": ("00:00:10", "", "INVALID", "many"),
    "TimelimitRaw": ("60", "UNLIMITED", "Partition_Limit", "", "9" * 15),
    "Priority": ("5", "", "4294967294"),
    "Flags": ("SchedMain,StartRecieved", "", "SchedBackfill"),
    "Reason": ("None", "Priority", ""),
    "Restarts": ("0", "3", "", "9999999999"),
    "NNodes": ("1", "", "4"),
    "AllocCPUS": ("8", "", "99999999999"),
    "ReqMem": ("4000M", "2Gc", "", "0n", "lots"),
    "ReqTRES": ("cpu=8,gres/gpu=2,mem=8G,node=1", "", "cpu"),
    "AllocTRES": ("cpu=8,gres/gpu=2,gres/gpu:a100=2,node=1", "", "gres/gpu=x", "cpu=1"),
    "NodeList": ("gpu[1-2]", "None assigned", ""),
    "SubmitLine": ("sbatch a.sh", "srun x", "/usr/bin/salloc", "", "sbatch 'a\nb'", "sbatch a|b"),
    "ExitCode": ("0:0", "1:9", "", "x"),
}
ROWS = st.lists(
    st.fixed_dictionaries({name: st.sampled_from(values) for name, values in VALUES.items()}), min_size=1, max_size=6
)
LACKING = ("ElapsedRaw", "TimelimitRaw", "Flags", "ReqTRES", "JobID", "SubmitLine")
GOOD = {name: values[0] for name, values in VALUES.items()} | {"JobID": "7"}


@given(
    ROWS,
    st.sets(st.sampled_from(LACKING), max_size=3),
    st.sampled_from(("\n", "\r\n")),
    st.sampled_from((UTC, NEW_YORK)),
)
@example([GOOD], set(), "\n", UTC)
@example([GOOD, GOOD | {"JobIDRaw": "8.batch"}, GOOD | {"JobIDRaw": "7.0"}], {"SubmitLine"}, "\n", NEW_YORK)
def test_a_table_has_the_jobs_that_the_reader_of_rows_has(
    rows: list[dict[str, str]], without: set[str], ending: str, zone: tzinfo
) -> None:
    """Whatever the columns hold, the table and the rows left over give the same jobs, and the same rows are bad."""
    columns = [name for name in VALUES if name not in without]
    data = "".join(D.join(row[name] for name in columns) + ending for row in rows).encode()
    table = page_table(data, columns, D.encode(), "gw", zone=zone)
    whole, bad = _read(data, columns, zone)
    found: dict[Any, dict[str, Any]] = {}
    left_bad = 0
    for texts in table.left_over.values():
        some, few = _read("".join(f"{text}\n" for text in texts).encode(), columns, zone)
        found, left_bad = found | some, left_bad + few
    for line in table.lines:
        row = dict(zip(COLUMNS, line.split(SEPARATOR), strict=True))
        found[int(row["job_id"]), int(row["run_start"])] = row
    assert found.keys() == whole.keys()
    steps = any("." in row["JobIDRaw"] for row in rows)
    assert left_bad <= bad if steps else left_bad == bad  # what a step holds is not read for the table
    if len(whole) == len(rows):  # no two rows of one run, whose order would decide
        assert found == whole


def _read(data: bytes, columns: list[str], zone: tzinfo) -> tuple[dict[Any, dict[str, Any]], int]:
    """Return the jobs as texts of the table, and the number of bad rows and fields."""
    found, bad = {}, 0
    for row in parse_sacct(data.splitlines(keepends=True), "gw", columns, D.encode(), zone):
        if not isinstance(row, JobRecord):
            bad += 1
            continue
        values = job_row(row)
        found[row.job_id, values["run_start"]] = {name: _text(values[name]) for name in COLUMNS}
    return found, bad


def _text(value: object) -> str:
    if value is None:
        return NULL
    return str(value).lower() if isinstance(value, bool) else str(value)


def test_many_rows_that_are_left_over_cost_no_more_each() -> None:
    """Lines that are no rows are left over together, as they may be one, without a copy for each."""
    table = page_table(b"junk\n" * 200_000, ["JobIDRaw", "Submit", "ExitCode"], b"|", "gw")
    assert [len(texts) for texts in table.left_over.values()] == [200_000]
    assert table.lines == []
