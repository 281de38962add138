"""Samples of odd history files, each named for its oddity, are read as they are meant."""

from pathlib import Path

import pytest

from gpuwaste.jobs.importers.file_source import csv_file, sacct_file
from gpuwaste.jobs.importers.history_source import ImportSource, Notes, parser_of
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.accounting.sacct_rows import BadRow

FIXTURES = Path(__file__).parents[3] / "fixtures"
GiB = 2**30
MiB = 2**20


def runs(source: ImportSource) -> list[JobRecord]:
    """Return the runs of a file of which nothing is set aside or unknown for want of reading."""
    parse, notes = parser_of(source.kind), Notes()
    rows = [row for page in source.pages(None) for row in parse(page.data, source.context, notes)]
    assert [row for row in rows if isinstance(row, BadRow)] == []
    return [row for row in rows if isinstance(row, JobRecord)]


def table(name: str) -> list[JobRecord]:
    """Return the runs of a table as slurmdbd keeps it."""
    return runs(csv_file(FIXTURES / "csv" / name, FIXTURES / "csv" / "mapping.toml", "", zone="UTC"))


def test_array_tasks_that_share_id_and_start() -> None:
    """Three tasks are three runs, with what their numeric lists, marks and wait statuses say."""
    found = table("array_tasks_that_share_id_and_start.csv")
    assert [job.printed_id for job in found] == ["7_0", "7_1", "7_2"]
    assert len({job.run_key for job in found}) == 3
    assert [(job.state, job.exit_code, job.exit_signal) for job in found] == [
        ("COMPLETED", 0, 0),
        ("FAILED", 1, 0),
        ("CANCELLED", 0, 9),
    ]
    assert {(job.gpus, job.cpus, job.n_nodes, job.mem_req_b, job.time_limit_s) for job in found} == {
        (1, 4, 1, 4 * 2000 * MiB, 3600)
    }


def test_numbers_for_absent() -> None:
    """A job that never started, and one without limit and without memory."""
    waited, ran = table("numbers_for_absent.csv")
    assert (waited.printed_id, waited.array_job_id, waited.start, waited.gpus, waited.exit_code) == (
        "8",
        None,
        None,
        0,
        None,
    )
    assert (waited.time_limit_s, waited.mem_req_b) == (None, None)
    assert (ran.time_limit_s, ran.mem_req_b, ran.gpus, ran.cpus) == (None, None, 0, 4)


def test_json_with_a_byte_that_is_no_utf8() -> None:
    """The name is escaped; a limit of 0 is unknown."""
    (job,) = runs(sacct_file(FIXTURES / "sacct" / "json_with_a_byte_that_is_no_utf8.json", "", zone="UTC"))
    assert (job.name, job.time_limit_s, job.elapsed_s) == (r"caf\xe9", None, 60)


def test_json_of_22_05() -> None:
    """A recording of a real cluster, whose numbers have no objects around them."""
    found = runs(sacct_file(FIXTURES / "own_recordings" / "sacct_2205.json", "", zone="UTC"))
    assert {job.cluster for job in found} == {"gw"}
    assert found[0].name == "train"
    assert all(job.gpus is not None for job in found)


@pytest.mark.parametrize("name", ["array_tasks_that_share_id_and_start.csv", "numbers_for_absent.csv"])
def test_a_table_without_its_tres_ids_does_not_know_its_gpus(name: str, tmp_path: Path) -> None:
    """An id that has no name may be a GPU: unknown, not 0, and told."""
    mapping = tmp_path / "m.toml"
    text = (FIXTURES / "csv" / "mapping.toml").read_text(encoding="utf-8")
    mapping.write_text(text.partition("[tres]")[0], encoding="utf-8")
    source = csv_file(FIXTURES / "csv" / name, mapping, "", zone="UTC")
    (page,) = source.pages(None)
    rows = list(parser_of("csv")(page.data, source.context, Notes()))
    told = [row for row in rows if isinstance(row, BadRow)]
    unknown = [row for row in rows if isinstance(row, JobRecord) and row.gpus is None]
    assert len(told) == len(unknown) == page.data.count(b"1002=")
