"""CSV files of jobs, by a mapping."""

import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwaste.core.errors import ConfigError, GpuwasteError, UsageError
from gpuwaste.jobs.run_changes import job_row
from gpuwaste.slurm.accounting.job_record import AccountedRun, JobDetails, JobRecord
from gpuwaste.slurm.accounting.sacct_rows import BadRow
from gpuwaste.slurm.accounting.tres_amounts import parse_tres
from gpuwaste.slurm.formats.csv_jobs import header_of, read_csv
from gpuwaste.slurm.formats.csv_mapping import parse_mapping
from gpuwaste.store.hub.json_rows import to_json

MAPPING = """
zone = "Europe/Oslo"
[columns]
job_id = "id"
submit = "submitted"
start = "begun"
elapsed_s = "minutes"
time_limit_s = "limit"
user = "who"
state = "result"
req_gpus = "gpus"
req_cpus = "cores"
req_mem_b = "mem"
max_rss_b = "peak"
[units]
elapsed_s = "min"
req_mem_b = "G"
[states]
"done" = "COMPLETED"
"""
HEADER = b"id,submitted,begun,minutes,limit,who,result,gpus,cores,mem,peak,other\n"
ROW = {
    "id": "7",
    "submitted": "2024-07-01 12:00:00",
    "begun": "2024-07-01T12:10:00+02:00",
    "minutes": "1.5",
    "limit": "1-00:00:00",
    "who": "a",
    "result": "done",
    "gpus": "2",
    "cores": "8",
    "mem": "0.5",
    "peak": "2G",
    "other": "",
}
TRES = """
[columns]
job_id = "id"
submit = "t"
start = "s"
end = "e"
alloc_tres = "alloc"
req_tres = "req"
state = "state"
exit_code = "exit"
mem_req_b = "mem"
nodes = "nodes"
array_job_id = "array"
array_task_id = "task"
time_limit_s = "limit"
restarts = "restarts"
[units]
mem_req_b = "M"
time_limit_s = "min"
[tres]
1002 = "gres/gpu"
1003 = "gres/gpu:a100"
"""
TRES_HEADER = b"id,t,s,e,alloc,req,state,exit,mem,nodes,array,task,limit,restarts\n"
TRES_ROW = {
    "id": "7", "t": "1700000000", "s": "1700000010", "e": "1700000070", "alloc": "", "req": "", "state": "COMPLETED",
    "exit": "0", "mem": "", "nodes": "n1", "array": "", "task": "", "limit": "60", "restarts": "0",
}  # fmt: skip


def row(**changes: str) -> bytes:
    return (",".join(f'"{v}"' for v in (ROW | changes).values()) + "\n").encode()


def read(*lines: bytes, mapping: str = MAPPING) -> list[JobRecord | BadRow]:
    mapped = parse_mapping(mapping, "m.toml")
    return list(read_csv(io.BytesIO(b"".join(lines)), "old", mapped, header_of(HEADER, mapped)))


def one(**changes: str) -> JobRecord:
    (job,) = read(row(**changes))
    assert isinstance(job, JobRecord), job
    return job


def test_units_times_and_words_are_the_files() -> None:
    """Dates in the file's zone, minutes, GiB, and its own words become a run; the end follows from its length."""
    job = one()
    assert (job.job_id, job.submit, job.start, job.end, job.elapsed_s) == (7, 1719828000, 1719828600, 1719828690, 90)
    assert (job.cluster, job.user, job.state, job.time_limit_s, job.max_rss_b) == (
        "old",
        "a",
        "COMPLETED",
        86400,
        2**31,
    )
    assert job.req_tres == "cpu=8,mem=512M,gres/gpu=2"


def test_what_is_absent_stays_unknown() -> None:
    """Empty, NULL and -1 are no amounts; a run without a start has no length."""
    job = one(begun="NULL", minutes="-1", gpus="", cores="-1", mem="nan", limit="", peak="", result="")
    assert (job.start, job.end, job.elapsed_s, job.req_tres, job.time_limit_s, job.max_rss_b, job.state) == (
        None, None, None, "", None, None, "",
    )  # fmt: skip


@pytest.mark.parametrize("text", ["0.5", "2.75", "1e-3", "0.999999"])
def test_a_fraction_of_a_gpu_is_unknown_and_told(text: str) -> None:
    """A share of a GPU or a quota of CPUs is neither cut to 0 nor to a whole number; the rest of the run is read."""
    mapping = MAPPING.replace("req_gpus", "gpus").replace("req_cpus", "cpus")
    gpus, cpus, job = read(row(gpus=text, cores=text), mapping=mapping)
    assert isinstance(gpus, BadRow)
    assert isinstance(cpus, BadRow)
    assert isinstance(job, JobRecord)
    assert {cpus.field, gpus.field} == {"gpus", "cpus"}
    assert gpus.reason.endswith(f"{text!r} is not a whole number")
    assert (job.gpus, job.cpus, job.job_id) == (None, None, 7)
    (whole,) = read(row(gpus="1.0", cores="4"), mapping=mapping)
    assert isinstance(whole, JobRecord)
    assert (whole.gpus, whole.cpus) == (1, 4)


def test_an_id_that_is_no_number_has_one_all_the_same() -> None:
    """It is drawn from the text, above all numbers, and the text is what is printed."""
    first, other = one(id="application_15_1"), one(id="application_15_2")
    assert first.printed_id == "application_15_1"
    assert first.job_id == one(id="application_15_1").job_id != other.job_id
    assert first.job_id > 2**48


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (row(submitted="soon"), "submit: cannot read 'soon'"),
        (row(submitted=""), "no submit time"),
        (row(id=""), "no job id"),
        (b"1,2\n", "2 columns, but the header has 12"),
    ],
)
def test_a_row_that_cannot_be_read_is_set_aside(line: bytes, reason: str) -> None:
    """The next one is read all the same; the line is that where the row begins."""
    first, second, third = read(row(other="x\ny"), line, row())
    assert isinstance(second, BadRow)
    assert reason in second.reason
    assert second.line == 3
    assert isinstance(first, JobRecord)
    assert isinstance(third, JobRecord)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[columns]\njob_id = 'id'", "lacks submit"),
        ("[columns]\njob_id = 'id'\nsubmit = 's'\nusr = 'u'", "did you mean 'user'"),
        ("[columns]\njob_id = 'id'\nsubmit = 's'\n[units]\nelapsed_s = 'G'", "expected one of"),
        ("[columns]\njob_id = 'id'\nsubmit = 's'\n[states]\nok = 'FINE'", "FINE"),
        ("zone = 'Mars/Base'\n[columns]\njob_id = 'id'\nsubmit = 's'", "Mars"),
        ("delimiter = '::'\n[columns]\njob_id = 'id'\nsubmit = 's'", "one character"),
        ("columns = 3", "table"),
        ("x =", "invalid TOML"),
    ],
)
def test_a_wrong_mapping_is_named(text: str, message: str) -> None:
    """File, table and key are in the one line."""
    with pytest.raises(GpuwasteError, match=message):
        parse_mapping(text, "m.toml")


def test_a_column_that_the_file_lacks_is_named() -> None:
    """The header's own names are shown beside it."""
    with pytest.raises(UsageError, match=r"no column 'begun', .* it has a, b"):
        header_of(b"a,b\n", parse_mapping(MAPPING, "m.toml"))


def test_epoch_and_other_formats() -> None:
    """Seconds since the epoch with a fraction, and a format of the site's own."""
    epoch = MAPPING.replace("zone =", 'time_format = "epoch"\nzone =')
    (job,) = read(row(submitted="1700000000.7", begun="1700000001"), mapping=epoch)
    assert isinstance(job, JobRecord)
    assert (job.submit, job.start) == (1700000000, 1700000001)
    own = MAPPING.replace("zone =", 'time_format = "%d.%m.%Y %H:%M"\nzone =')
    (job,) = read(row(submitted="01.07.2024 12:00", begun=""), mapping=own)
    assert isinstance(job, JobRecord)
    assert job.submit == 1719828000


def test_the_mapping_must_be_a_mapping() -> None:
    """A mapping of another kind is refused as configuration."""
    with pytest.raises(ConfigError):
        parse_mapping("[columns]\njob_id = 3", "m.toml")


@given(st.lists(st.binary(max_size=60) | st.just(row()) | st.just(b'"open\n'), max_size=6))
def test_no_bytes_raise(lines: list[bytes]) -> None:
    """Any damage gives records and bad rows."""
    for record in read(*lines):
        assert isinstance(record, JobRecord | BadRow)


def tres(*rows: dict[str, str], mapping: str = TRES) -> list[JobRecord | BadRow]:
    """Read rows of the second table."""
    mapped = parse_mapping(mapping, "m.toml")
    lines = [(",".join(f'"{v}"' for v in (TRES_ROW | changes).values()) + "\n").encode() for changes in rows]
    return list(read_csv(lines, "old", mapped, header_of(TRES_HEADER, mapped)))


def one_tres(mapping: str = TRES, **changes: str) -> JobRecord:
    (job,) = tres(changes, mapping=mapping)
    assert isinstance(job, JobRecord), job
    return job


@pytest.mark.parametrize(
    ("changes", "name", "reason"),
    [
        ({"minutes": "long"}, "elapsed_s", "cannot read|expected D-HH"),
        ({"gpus": "-5"}, "req_gpus", "cannot read '-5'"),
        ({"limit": "inf"}, "time_limit_s", "cannot read 'inf'"),
        ({"begun": "soon"}, "start", "cannot read 'soon'"),
        ({"mem": "lots"}, "req_mem_b", "lots"),
    ],
)
def test_a_field_that_cannot_be_read_is_unknown_and_told(changes: dict[str, str], name: str, reason: str) -> None:
    """The run comes without it; line, field and value are told before it."""
    told, job = read(row(**changes))
    assert isinstance(told, BadRow)
    assert isinstance(job, JobRecord)
    assert (told.field, told.line, job.job_id, job.user) == (name, 1, 7, "a")
    assert re.search(reason, told.reason)


@pytest.mark.parametrize(
    "text",
    [
        "4294967294",
        "4294967295",
        "9223372036854775807",
        "9.223372036854776e18",
        "18446744073709551614",
        "18446744073709551615",
        "-2",
        "-1",
    ],
)
def test_slurms_no_numbers_are_absent(text: str) -> None:
    """NO_VAL and INFINITE, of 32 and 64 bits, are neither an amount nor a problem, whatever the unit."""
    job = one_tres(limit=text, restarts=text, mem=text, s=text, array=text, task=text, exit=text)
    assert (job.time_limit_s, job.restarts, job.mem_req_b, job.start, job.array_job_id, job.array_task_id) == (
        None,
    ) * 6
    assert (job.job_id, job.exit_code) == (7, None)


def test_a_request_of_minus_one_is_absent_too() -> None:
    """The same numbers in the columns of the first mapping."""
    job = one(gpus="4294967294", minutes="4294967295", limit="18446744073709551615", mem="9223372036854775807")
    assert (job.req_tres, job.elapsed_s, job.time_limit_s) == ("cpu=8", None, None)


@pytest.mark.parametrize(
    ("alloc", "req", "expected"),
    [
        ("cpu=4,mem=8000M,gres/gpu=2,gres/gpu:a100=2", "", (2, "a100", 4, 8000 * 2**20)),
        ("1=4,2=8000,4=1,1002=2,1003=2", "", (2, "a100", 4, 8000 * 2**20)),
        ("1=4,2=18446744073709551614,4=1", "", (0, "", 4, None)),
        ("", "cpu=8,gres/gpu=3", (3, "", None, None)),
        ("1=4,1009=1", "", (None, "", 4, None)),
        ("1=4,1009=1,1002=1", "", (1, "", 4, None)),
        ("", "", (None, "", None, None)),
        ("cpu=4", "", (0, "", 4, None)),
    ],
)
def test_tres_lists_tell_gpus_type_cpus_and_memory(
    alloc: str, req: str, expected: tuple[int | None, str, int | None, int | None]
) -> None:
    """By name or by number; the request where the allocation is not kept; unknown, not 0, where nothing tells."""
    job = next(found for found in tres({"alloc": alloc, "req": req}) if isinstance(found, JobRecord))
    assert (job.gpus, job.gpu_type, job.cpus, job.mem_req_b) == expected
    parse_tres(job.alloc_tres)


def test_an_id_without_a_name_is_told() -> None:
    """A number that [tres] lacks may be a GPU."""
    told, _ = tres({"alloc": "1=4,1009=1"})
    assert isinstance(told, BadRow)
    assert (told.field, told.reason) == ("alloc_tres", "alloc_tres: TRES id '1009' has no name in [tres]")


def test_a_job_that_never_started_holds_no_gpu() -> None:
    """Its allocation is empty because there was none."""
    assert one_tres(s="", alloc="", req="cpu=1,gres/gpu=4").gpus == 0


def test_without_a_column_that_tells_gpus_they_are_unknown() -> None:
    """Unknown is not none."""
    mapping = "[columns]\njob_id = 'id'\nsubmit = 't'\nstart = 's'\nend = 'e'\n"
    assert one_tres(mapping).gpus is None


@pytest.mark.parametrize(
    ("text", "unit", "expected"),
    [
        ("0:9", "", (0, 9)), ("1:0", "", (1, 0)), ("3", "", (3, None)), ("256", "", (1, 0)), ("256", "wait", (1, 0)),
        ("9", "wait", (0, 9)), ("0", "wait", (0, 0)), ("65280", "wait", (255, 0)), ("137", "", (137, None)),
    ],
)  # fmt: skip
def test_exit_codes_of_every_shape(text: str, unit: str, expected: tuple[int, int | None]) -> None:
    """CODE:SIGNAL, a code, and the status that wait(2) gives, which slurmdbd keeps."""
    job = one_tres(TRES.replace("[units]", f'[units]\nexit_code = "{unit}"') if unit else TRES, exit=text)
    assert (job.exit_code, job.exit_signal) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("64Gn", 2 * 64 * 2**30), ("4000Mc", 8 * 4000 * 2**20), ("4000", 4000 * 2**20), ("64G", 64 * 2**30),
        ("2147486448", 8 * 2800 * 2**20), ("9223372036854778608", 8 * 2800 * 2**20), ("0", None),
    ],
)  # fmt: skip
def test_memory_for_each_node_or_processor_is_multiplied(text: str, expected: int | None) -> None:
    """Sacct's suffixes and slurmdbd's highest bit, of 32 and 64 bits, mean the same as in sacct's own files."""
    assert one_tres(mem=text, alloc="cpu=8,node=2").mem_req_b == expected


def test_memory_for_each_of_an_unknown_number_is_told() -> None:
    """It is neither taken as the total nor dropped in silence."""
    told, job = tres({"mem": "64Gn"})
    assert isinstance(told, BadRow)
    assert told.field == "mem_req_b"
    assert isinstance(job, JobRecord)
    assert job.mem_req_b is None


def test_none_assigned_is_no_node() -> None:
    """As sacct prints it for a job that waits."""
    assert one_tres(nodes="None assigned").nodes == ""


def test_a_state_that_is_a_number_needs_a_mapping() -> None:
    """Unmapped it is unknown and told; mapped it is that state."""
    told, job = tres({"state": "3"})
    assert isinstance(told, BadRow)
    assert isinstance(job, JobRecord)
    assert (told.field, told.reason, job.state) == ("state", "state: the number '3' is not in [states]", "")
    assert one_tres(TRES + '[states]\n3 = "COMPLETED"\n', state="3").state == "COMPLETED"


def test_tasks_of_an_array_that_share_id_and_start_are_told_apart() -> None:
    """Each has an id of its own, the same each time, and prints as Slurm prints it."""
    first, second = tres({"array": "7", "task": "1"}, {"array": "7", "task": "2"})
    assert isinstance(first, JobRecord)
    assert isinstance(second, JobRecord)
    assert first.run_key != second.run_key
    assert [(job.printed_id, job.array_job_id, job.array_task_id) for job in (first, second)] == [
        ("7_1", 7, 1), ("7_2", 7, 2),
    ]  # fmt: skip
    assert one_tres(task="2").run_key == second.run_key, "the job id is the array's where no other is mapped"
    assert (one_tres(id="9", array="7", task="2").job_id, one_tres(id="9", array="7", task="2").printed_id) == (
        9,
        "7_2",
    )


def test_a_printed_array_id_tells_array_and_task() -> None:
    """JobID of sacct in the column of the id."""
    job = one_tres(id="7_2")
    assert (job.printed_id, job.array_job_id, job.array_task_id) == ("7_2", 7, 2)


def test_rows_that_share_id_and_start_are_counted_each() -> None:
    """The first is kept, each other one is a bad row that names it; one that is equal, or ends it, is the same run."""
    found = tres({}, {"nodes": "n2"}, {"nodes": "n3"}, {})
    bad = [item for item in found if isinstance(item, BadRow)]
    assert [item.line for item in bad] == [2, 3]
    assert all("same job id and start as line 1" in item.reason for item in bad)
    assert all("map array_task_id" in item.reason for item in bad)
    assert sum(isinstance(item, JobRecord) for item in found) == 2
    assert all(isinstance(item, JobRecord) for item in tres({"e": "", "state": "RUNNING"}, {}))


@given(
    st.lists(
        st.fixed_dictionaries(
            {},
            optional={
                name: st.text(max_size=20)
                | st.sampled_from(
                    [
                        "-1",
                        "4294967294",
                        "1=4,1002=1",
                        "0:9",
                        "64Gn",
                        "1e999",
                        "nan",
                        "3.5",
                        "2147486448",
                        "\u0661",
                        "-",
                        "{1=2}",
                    ]
                )
                for name in TRES_ROW
            },
        ),
        max_size=4,
    )
)
def test_no_value_raises(rows: list[dict[str, str]]) -> None:
    """Whatever stands in a column, a row is a run, a bad row, or a run with fields that are told."""
    clean = [{name: value.replace('"', "") for name, value in changes.items()} for changes in rows]
    for record in tres(*clean):
        assert isinstance(record, JobRecord | BadRow)
        if isinstance(record, JobRecord):
            to_json([job_row(record)])
            assert record.gpus is None or 0 <= record.gpus < 2**31


def test_what_only_analytics_reads_can_be_mapped() -> None:
    """Details have columns like any other field; one that is not mapped is unknown, an empty text is none."""
    names = ("eligible", "priority", "flags", "reason", "constraints", "n_steps", "energy_j", "disk_read_b")
    mapping = "[columns]\njob_id='id'\nsubmit='t'\n" + "".join(f"{name}='{name}'\n" for name in names)
    mapped = parse_mapping(mapping + "[units]\ndisk_read_b='M'\n", "m", "UTC")
    header = ["id", "t", *names]
    lines = [b'7,1700000000,1700000010,4294901760,"SchedBackfill,StartRecieved",Priority,,3,0,1.5\n']
    (run,) = read_csv(lines, "gw", mapped, header)
    assert isinstance(run, AccountedRun)
    assert run.details == JobDetails(
        1700000010, 4294901760, "SchedBackfill,StartReceived", "Priority", "", None, 3, None, 1572864
    )
