"""CSV files of jobs, by a mapping."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwaste.core.errors import ConfigError, GpuwasteError, UsageError
from gpuwaste.core.job import JobRecord
from gpuwaste.slurm.csv_jobs import header_of, read_csv
from gpuwaste.slurm.csv_mapping import parse_mapping
from gpuwaste.slurm.sacct import BadRow

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
    "id": "7", "submitted": "2024-07-01 12:00:00", "begun": "2024-07-01T12:10:00+02:00", "minutes": "1.5",
    "limit": "1-00:00:00", "who": "a", "result": "done", "gpus": "2", "cores": "8", "mem": "0.5", "peak": "2G",
    "other": "",
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
    assert job.req_tres == "cpu=8,mem=524288K,gres/gpu=2"


def test_what_is_absent_stays_unknown() -> None:
    """Empty, NULL and -1 are no amounts; a run without a start has no length."""
    job = one(begun="NULL", minutes="-1", gpus="", cores="-1", mem="nan", limit="", peak="", result="")
    assert (job.start, job.end, job.elapsed_s, job.req_tres, job.time_limit_s, job.max_rss_b, job.state) == (
        None, None, None, "", None, None, "",
    )  # fmt: skip


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
        (row(minutes="long"), "elapsed_s"),
        (row(gpus="-5"), "req_gpus"),
        (row(limit="inf"), "time_limit_s"),
        (b"1,2\n", "2 columns where the header has 12"),
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
        ("x =", "no valid TOML"),
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
