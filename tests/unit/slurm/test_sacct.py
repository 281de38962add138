"""Rows of sacct become runs, or are set aside with the reason."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwaste.core.errors import ParseError
from gpuwaste.slurm.accounting.job_record import MAX_STEPS, MAX_TEXT, AccountedRun, JobDetails, JobRecord, StepRecord
from gpuwaste.slurm.accounting.sacct_rows import (
    ADMIN_COMMENT,
    FIELDS,
    MORE_FIELDS,
    BadRow,
    parse_sacct,
    sacct_argv,
    sacct_fields,
)
from gpuwaste.slurm.run_key import RunKey

D = "\x1f"
JOB = {
    "JobIDRaw": "7",
    "JobID": "7",
    "User": "alice",
    "UID": "1001",
    "Group": "alice",
    "Account": "proj1",
    "Partition": "gpu",
    "QOS": "normal",
    "State": "COMPLETED",
    "Submit": "1700000000",
    "Start": "1700000100",
    "End": "1700000200",
    "ElapsedRaw": "90",
    "Suspended": "00:00:10",
    "TimelimitRaw": "10",
    "NNodes": "2",
    "AllocCPUS": "8",
    "ReqMem": "100M",
    "ReqTRES": "cpu=8,gres/gpu=4",
    "AllocTRES": "cpu=8,gres/gpu:2080ti=4,gres/gpu=4,mem=200M",
    "NodeList": "gpu[1-2]",
    "MaxRSS": "",
    "TotalCPU": "00:02.500",
    "JobName": "train",
    "SubmitLine": "sbatch train.sh",
    "AdminComment": "",
    "ExitCode": "1:9",
}


def row(**changes: str) -> bytes:
    return D.join((JOB | changes).values()).encode("utf-8", "surrogateescape") + b"\n"


def step(name: str, job: str = "7", **changes: str) -> bytes:
    return row(JobIDRaw=f"{job}.{name}", JobID=f"{job}.{name}", User="", JobName=name, SubmitLine="", **changes)


def read(*lines: bytes) -> list[JobRecord | BadRow]:
    return list(parse_sacct(b"".join(lines).splitlines(keepends=True), "gw"))


def one(*lines: bytes) -> JobRecord:
    (record,) = read(*lines)
    assert isinstance(record, JobRecord), record
    return record


def bad(*lines: bytes) -> BadRow:
    (record,) = read(*lines)
    assert isinstance(record, BadRow), record
    return record


def test_a_requeued_job_that_was_cancelled_first_has_no_start() -> None:
    """Slurm leaves the earlier run's start in its row: taken for its own, both runs would have one key."""
    changes = {"State": "CANCELLED by 1001", "Submit": "1700000101", "End": "1700000102", "ElapsedRaw": "0"}
    record = one(row(**changes))
    assert (record.start, record.elapsed_s) == (None, None)
    assert record.run_key == RunKey("gw", 7, 1700000101)


def test_folds_steps_into_their_run() -> None:
    """One record, with the largest step's memory and the job's own times."""
    record = one(row(), step("batch", MaxRSS="3182592"), step("0", MaxRSS="2M", TotalCPU="00:01.000"))
    assert record.run_key == RunKey("gw", 7, 1700000100)
    assert (record.submit, record.start, record.end, record.elapsed_s) == (1700000000, 1700000100, 1700000200, 90)
    assert (record.gpus, record.gpu_type, record.n_nodes, record.cpus) == (4, "2080ti", 2, 8)
    assert (record.max_rss_b, record.total_cpu_s, record.suspended_s) == (3182592, 3.5, 10)
    assert (record.exit_code, record.exit_signal, record.time_limit_s) == (1, 9, 600)
    assert (record.user, record.nodes, record.interactive) == ("alice", "gpu[1-2]", False)
    assert record.ended


def test_newlines_in_names_do_not_end_a_row() -> None:
    """A row ends where it has all its fields; the next one is its own."""
    first, second = read(row(JobName="a\n\n8\nb", SubmitLine="sbatch\nx"), row(JobIDRaw="8", JobID="8"))
    assert isinstance(first, JobRecord)
    assert isinstance(second, JobRecord)
    assert (first.name, first.submit_line, second.job_id) == ("a\n\n8\nb", "sbatch\nx", 8)


def test_a_delimiter_in_another_column_sets_that_row_aside_alone() -> None:
    """Too many fields are never shifted into others."""
    first, second = read(row(User=f"a{D}b"), row(JobIDRaw="8", JobID="8"))
    assert isinstance(first, BadRow)
    assert "28 fields instead of 27" in first.reason
    assert isinstance(second, JobRecord)


def test_a_row_without_its_end_does_not_swallow_the_next() -> None:
    """A cut-off row is set aside with its line number."""
    found = read(row()[:60] + b"\n", row(JobIDRaw="8", JobID="8"), row()[:50])
    assert [item.line for item in found if isinstance(item, BadRow)] == [1, 3]
    assert [item.job_id for item in found if isinstance(item, JobRecord)] == [8]


def test_bytes_that_are_no_utf8_become_text_that_can_be_stored() -> None:
    """No surrogate and no NUL reaches a store."""
    record = one(row().replace(b"train\x1f", b"tr\xff\xfe\xe9\0\x1f"))
    assert record.name == r"tr\xff\xfe\xe9"
    record.name.encode()


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"State": "CANCELLED by 1001"}, {"state": "CANCELLED"}),
        ({"State": "OUT_OF_ME+"}, {"state": "OUT_OF_ME"}),
        ({"State": "RUNNING", "End": "Unknown", "TotalCPU": "00:00:00"}, {"end": None, "total_cpu_s": None}),
        ({"TimelimitRaw": "UNLIMITED"}, {"time_limit_s": None}),
        ({"TimelimitRaw": "Partition_Limit"}, {"time_limit_s": None}),
        ({"ReqMem": "4Gn"}, {"mem_req_b": 8 * 1024**3}),
        ({"ReqMem": "1000Mc"}, {"mem_req_b": 8000 * 1024**2}),
        ({"ReqMem": "0n"}, {"mem_req_b": 200 * 1024**2}),
        ({"ReqMem": "2147486448Mn"}, {"mem_req_b": 8 * 2800 * 1024**2}),
        ({"ReqMem": "9223372036854778608M"}, {"mem_req_b": 8 * 2800 * 1024**2}),
        ({"ReqMem": "4294967294Mn"}, {"mem_req_b": 200 * 1024**2}),
        ({"ReqMem": "2.00Pn"}, {"mem_req_b": 200 * 1024**2}),
        ({"TimelimitRaw": "0"}, {"time_limit_s": None}),
        ({"AllocTRES": ""}, {"gpus": 4}),
        ({"AllocTRES": "", "ReqTRES": ""}, {"gpus": None}),
        ({"User": ""}, {"user": "1001"}),
        ({"JobID": "3_1"}, {"printed_id": "3_1", "array_job_id": 3, "array_task_id": 1}),
        ({"JobID": "3_[0-9%2]"}, {"array_job_id": 3, "array_task_id": None}),
        ({"JobID": "4+1"}, {"het_job_id": 4, "het_offset": 1, "array_job_id": None}),
        ({"Start": "Unknown", "AllocTRES": "", "NodeList": "None assigned"}, {"start": None, "gpus": 0, "nodes": ""}),
        ({"AllocTRES": "gres/shard=4,cpu=1"}, {"gpus": 0}),
        ({"SubmitLine": "salloc -n1"}, {"interactive": True}),
        ({"SubmitLine": "/usr/bin/srun x"}, {"interactive": True}),
        ({"SubmitLine": ""}, {"interactive": False}),
    ],
)
def test_reads_each_oddity(changes: dict[str, str], expected: dict[str, object]) -> None:
    """Each known peculiarity of sacct has its one meaning."""
    record = one(row(**changes))
    assert {name: getattr(record, name) for name in expected} == expected


def test_steps_tell_interactive_jobs_where_the_submit_line_is_missing() -> None:
    """Srun alone has a numbered step and no batch step."""
    assert one(row(SubmitLine=""), step("0")).interactive
    assert one(row(SubmitLine=""), step("interactive"), step("extern")).interactive
    assert not one(row(SubmitLine=""), step("batch"), step("0")).interactive


def test_a_requeued_job_is_two_runs() -> None:
    """-D prints each run, and steps go to the run before them."""
    first, second = read(
        row(State="REQUEUED"), step("batch", MaxRSS="1M"), row(Submit="1700000300", Start="1700000400"), step("batch")
    )
    assert isinstance(first, JobRecord)
    assert isinstance(second, JobRecord)
    assert (first.state, first.max_rss_b, second.max_rss_b) == ("REQUEUED", 1024**2, None)
    assert first.run_key != second.run_key


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"Submit": "Unknown"}, "Submit"),
        ({"Start": "yesterday"}, "Start"),
        ({"AllocTRES": "gres/gpu=many"}, "AllocTRES"),
        ({"ReqMem": "lots"}, "ReqMem"),
        ({"JobID": "x"}, "JobID"),
        ({"TotalCPU": "never"}, "TotalCPU"),
        ({"JobIDRaw": "x"}, "JobIDRaw"),
    ],
)
def test_a_column_that_cannot_be_read_is_named(changes: dict[str, str], reason: str) -> None:
    """The row is set aside with the column, its line and its text."""
    found = bad(row(**changes))
    assert reason in found.reason
    assert found.line == 1
    assert found.raw


def test_a_bad_step_sets_its_run_aside() -> None:
    """Half a sum is no sum; a step of no job is set aside by itself."""
    assert "step 0: MaxRSS" in bad(row(), step("0", MaxRSS="big")).reason
    assert "without a line of its job" in bad(step("0")).reason


@pytest.mark.parametrize(
    ("comment", "verdict"),
    [
        (";gw=0123456789abcdef", "0123456789abcdef"),
        ("moved by ops;gw=0123456789abcdef", "0123456789abcdef"),
        ("said `no` | twice\nand more;gw=0123456789abcdef;gw=fedcba9876543210", "fedcba9876543210"),
        ("half\udcff;gw=0123456789abcdef", "0123456789abcdef"),
        (";gw=0123456789ABCDEF", ""),
        (";gw=0123456789abcdefg", ""),
        ("xgw=0123456789abcdef", ""),
        ("", ""),
    ],
)
def test_the_verdict_of_a_job_is_read_from_the_administrators_comment(comment: str, verdict: str) -> None:
    """The last token counts, beside any other text: quotes that became backquotes, pipes, newlines, bad bytes."""
    assert one(row(AdminComment=comment), step("0", AdminComment="")).verdict_id == verdict


def test_an_export_without_the_comment_has_no_verdicts() -> None:
    """Files of before, and a sacct that does not name the column, are read as ever."""
    fields = sacct_fields([name for name in FIELDS if name != ADMIN_COMMENT])
    assert fields == tuple(name for name in FIELDS if name != ADMIN_COMMENT)
    line = D.join(value for name, value in JOB.items() if name != ADMIN_COMMENT).encode() + b"\n"
    (record,) = parse_sacct([line], "gw", fields)
    assert isinstance(record, JobRecord)
    assert (record.verdict_id, record.exit_code) == ("", 1)


def test_restarts_are_read_where_slurm_has_them() -> None:
    """The column is asked for only where sacct names it."""
    assert "Restarts" not in sacct_fields(FIELDS)
    fields = sacct_fields([*FIELDS, "Restarts"])
    line = D.join([*[*JOB.values()][:-1], "2", "0:0"]).encode() + b"\n"
    (record,) = parse_sacct([line], "gw", fields)
    assert isinstance(record, JobRecord)
    assert (record.restarts, record.exit_code) == (2, 0)


def test_any_order_of_columns_can_be_imported() -> None:
    """A saved file with other columns and delimiter is read by its own list."""
    lines = [b"3_1|9|train|2023-11-14T22:13:20|x\n"]
    (record,) = parse_sacct(lines, "gw", ("JobID", "JobIDRaw", "JobName", "Submit", "Comment"), b"|")
    assert isinstance(record, JobRecord)
    assert (record.job_id, record.submit) == (9, 1700000000)


def test_columns_without_identity_are_refused() -> None:
    """A file that cannot be keyed is no list of runs."""
    with pytest.raises(ParseError, match="JobIDRaw, Submit"):
        list(parse_sacct([b"7|x\n"], "gw", ("JobID", "State"), b"|"))


def test_rows_stream() -> None:
    """A run is yielded as soon as the next one begins: nothing waits for the end."""

    def endless() -> Iterator[bytes]:
        yield row()
        yield row(JobIDRaw="8", JobID="8")
        raise AssertionError("read too far")

    record = next(parse_sacct(endless(), "gw"))
    assert isinstance(record, JobRecord)
    assert record.job_id == 7


def test_asks_for_every_run_of_everybody() -> None:
    """Requeued runs, all users, machine units, and a window in UTC."""
    argv = sacct_argv(1700000000, 1700003600)
    assert {"--allusers", "--duplicates", "--parsable2", "--noconvert"} < set(argv)
    assert "--starttime=2023-11-14T22:13:20" in argv
    assert not any(word.startswith("--clusters") for word in argv)
    assert "--clusters=east" in sacct_argv(1700000000, 1700003600, cluster="east")


@given(st.lists(st.binary(max_size=60) | st.just(row()) | st.just(step("0")), max_size=8), st.data())
def test_no_bytes_raise(parts: list[bytes], data: st.DataObject) -> None:
    """Any damage gives records and bad rows."""
    text = b"".join(parts)
    at = data.draw(st.integers(0, len(text)))
    lines = (text[:at] + data.draw(st.sampled_from([b"\n", b"\x1f", b"", b"9" * 50])) + text[at:]).splitlines(
        keepends=True
    )
    for record in parse_sacct(lines, "gw"):
        assert isinstance(record, JobRecord | BadRow)


HASH = "a0" * 32
MORE = {
    "Comment": "",
    "Restarts": "0",
    "Eligible": "1700000050",
    "Priority": "4294901759",
    "Flags": "SchedBackfill,StartRecieved",
    "Reason": "Resources",
    "Constraints": "a100|h100&nvlink",
    "Reservation": "course",
    "ConsumedEnergyRaw": "",
    "NTasks": "",
    "TRESUsageInTot": "",
    "TRESUsageInMax": "",
    "TRESUsageOutTot": "",
}


def more_row(**changes: str) -> bytes:
    values = JOB | MORE | changes
    return D.join(values[name] for name in sacct_fields([*FIELDS, *MORE_FIELDS])).encode() + b"\n"


def more_step(name: str, disk: tuple[int, int] | None = None, **changes: str) -> bytes:
    read, written = (
        (f"cpu=00:00:01,energy=0,fs/disk={disk[0]},mem=1", f"energy=0,fs/disk={disk[1]}") if disk else ("", "")
    )
    values = {
        "JobIDRaw": f"7.{name}",
        "JobID": f"7.{name}",
        "JobName": f"n{name}",
        "NTasks": "2",
        "Flags": "",
        "Reason": "",
    }
    return more_row(**(values | {"TRESUsageInTot": read, "TRESUsageOutTot": written} | changes))


def read_more(*lines: bytes) -> list[JobRecord | BadRow]:
    return list(parse_sacct(b"".join(lines).splitlines(keepends=True), "gw", sacct_fields([*FIELDS, *MORE_FIELDS])))


def detailed(*lines: bytes) -> AccountedRun:
    (record,) = read_more(*lines)
    assert isinstance(record, AccountedRun), record
    return record


def test_what_only_analytics_reads_is_told_with_the_run() -> None:
    """Since when it could start, its priority, who started it, what it waited for, where it was bound to run."""
    assert detailed(more_row()).details == JobDetails(
        eligible=1700000050,
        priority=4294901759,
        flags="SchedBackfill,StartReceived",
        reason="Resources",
        constraints="a100|h100&nvlink",
        reservation="course",
        program="",
    )


@pytest.mark.parametrize(
    ("columns", "program"),
    [
        ({"Comment": f"gpuwaste:program={HASH},steps=7"}, f"{HASH},steps=7"),
        ({"Comment": f"mine\n|;gpuwaste:program={HASH}"}, HASH),
        ({"SubmitLine": f"sbatch --comment=gpuwaste:program={HASH} a.sh"}, HASH),
        ({"Comment": f"gpuwaste:program={HASH}", "SubmitLine": f"sbatch --comment=gpuwaste:program={'b' * 64}"}, HASH),
        ({"Comment": "gpuwaste:program=\x1b[31m; DROP TABLE jobs"}, ""),
    ],
)
def test_the_program_that_a_comment_names(columns: dict[str, str], program: str) -> None:
    """The comment goes before the submit line, which alone is there where a site keeps no comments; no text is kept."""
    assert detailed(more_row(**columns)).details.program == program


def test_steps_are_kept_and_added_up() -> None:
    """Steps of srun are counted, disk is summed, energy is the largest step's, extern is added up but not kept."""
    run = detailed(
        more_row(),
        more_step("batch", (100, 10), ConsumedEnergyRaw="500", MaxRSS="2048K"),
        more_step("extern", (1, 0), ConsumedEnergyRaw="0"),
        more_step("0", (30, 4), ConsumedEnergyRaw="400", State="FAILED", ExitCode="3:0"),
        more_step("1", End="Unknown", State="RUNNING"),
    )
    details = run.details
    assert (details.n_steps, details.energy_j, details.disk_read_b, details.disk_write_b) == (2, 500, 131, 14)
    assert run.steps == (
        StepRecord("batch", "nbatch", 1700000100, 90, 2, 2048 * 1024, "COMPLETED", 1, 9),
        StepRecord("0", "n0", 1700000100, 90, 2, None, "FAILED", 3, 0),
    )


def test_energy_of_0_is_not_known_and_the_job_s_own_counts_first() -> None:
    """Without a plugin that measures, Slurm writes 0 joules."""
    assert detailed(more_row(ConsumedEnergyRaw="0"), more_step("0", ConsumedEnergyRaw="0")).details.energy_j is None
    assert detailed(more_row(ConsumedEnergyRaw="900"), more_step("0", ConsumedEnergyRaw="400")).details.energy_j == 900


def test_a_detail_that_cannot_be_read_costs_the_run_nothing_else() -> None:
    """The field is named, and the run comes with all the rest."""
    *aside, run = read_more(more_row(Eligible="soon"), more_step("0", (5, 5), ConsumedEnergyRaw="9" * 20 + "E"))
    assert {row.field for row in aside if isinstance(row, BadRow)} == {"Eligible", "ConsumedEnergyRaw"}
    assert isinstance(run, AccountedRun)
    assert (run.details.eligible, run.details.energy_j) == (None, None)
    assert (run.details.reason, run.details.disk_read_b, len(run.steps)) == ("Resources", 5, 1)


def test_of_very_many_steps_the_first_are_kept_and_all_are_counted() -> None:
    """A loop of srun must not fill memory or store."""
    run = detailed(more_row(), *(more_step(str(n), (1, 1)) for n in range(MAX_STEPS + 500)))
    assert (len(run.steps), run.details.n_steps, run.details.disk_read_b) == (
        MAX_STEPS,
        MAX_STEPS + 500,
        MAX_STEPS + 500,
    )


def test_long_texts_are_cut() -> None:
    """Names of steps and constraints are users' own, and have a bound."""
    run = detailed(more_row(Constraints="c" * 5000), more_step("0", JobName="n" * 5000))
    assert (run.details.constraints, run.steps[0].name) == ("c" * MAX_TEXT, "n" * MAX_TEXT)


def test_means_of_a_task_stand_in_for_totals() -> None:
    """A file with AveDiskRead in place of TRESUsageInTot tells the same, but for rounding."""
    columns = ("JobIDRaw", "Submit", "NTasks", "AveDiskRead", "AveDiskWrite")
    (run,) = parse_sacct([b"7|1700000000|||\n", b"7.0|1700000000|4|1.5M|10\n"], "gw", columns, b"|")
    assert isinstance(run, AccountedRun)
    assert (run.details.disk_read_b, run.details.disk_write_b) == (6 * 1024**2, 40)


def test_an_or_of_constraints_is_no_separator_of_columns() -> None:
    """In sacct -P a constraint `a|b` is written as it is; the other columns show where it belongs."""
    columns = ("JobIDRaw", "Submit", "ReqMem", "Constraints", "ReqTRES", "JobName", "ExitCode")
    (run,) = parse_sacct([b"7|1700000000|100M|a100|h100|cpu=4,mem=100M|train|0:0\n"], "gw", columns, b"|")
    assert isinstance(run, AccountedRun)
    assert (run.details.constraints, run.req_tres, run.name) == ("a100|h100", "cpu=4,mem=100M", "train")
