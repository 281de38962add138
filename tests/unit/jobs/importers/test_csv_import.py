"""The import of CSV files: no row is lost without being counted."""

import json
from pathlib import Path

import pytest
from tests.unit.jobs.importers.rows import opened

from gpuwaste.cli.main import main
from gpuwaste.jobs.importers.bulk_import import import_again, import_source
from gpuwaste.jobs.importers.history_status import status_document, status_text
from gpuwaste.jobs.importers.sources.csv import CsvFile
from gpuwaste.show.layout import Look

T0 = 1_700_000_000
MAPPING = """cluster = "old"
[columns]
job_id = "id"
submit = "t"
start = "s"
end = "e"
nodes = "n"
time_limit_s = "limit"
state = "state"
"""


def array_log(path: Path, jobs: int, tasks: int) -> Path:
    """Write arrays of which all tasks carry the array's id and begin in the same second."""
    rows = [
        f"{job},{T0 + job},{T0 + job + 5},{T0 + job + 60 + task},n{task},60,3,{job},{task}"
        for job in range(1, jobs + 1)
        for task in range(tasks)
    ]
    path.write_text("id,t,s,e,n,limit,state,array,task\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return path


def mapping(path: Path, more: str = "") -> Path:
    """Write the mapping."""
    path.write_text(MAPPING.replace("[columns]\n", "[columns]\n" + more), encoding="utf-8")
    return path


@pytest.mark.long
@pytest.mark.parametrize("page_b", [700, 1_000_000])
def test_tasks_that_are_not_told_apart_are_counted_each(tmp_path: Path, page_b: int) -> None:
    """Of 200 rows that share 20 ids and starts, 20 are runs and 180 are bad rows, however the file is cut."""
    path = tmp_path / "state" / "hub.duckdb"
    store = opened(path)
    file = array_log(tmp_path / "a.csv", 20, 10)
    result = import_source(store, path, CsvFile(file, mapping(tmp_path / "m.toml"), page_b=page_b))
    assert (result.runs, result.bad, len(store.ask("history_quarantine", {"limit": 9999}))) == (
        20,
        180,
        2 - (page_b > 9999),
    )
    assert {row["nodes"] for row in store.ask("jobs_of_id", {"cluster": "old", "job_id": 7})} == {"n0"}
    (again,) = import_again(store, path)
    assert (again.runs, again.bad, again.changed) == (20, 180, 0)
    assert sum(row["runs"] for row in store.ask("history_months")) == 20
    store.close()


def test_tasks_with_a_mapping_are_a_run_each(tmp_path: Path) -> None:
    """All 200, each under the name that Slurm prints for it."""
    path = tmp_path / "state" / "hub.duckdb"
    store = opened(path)
    file = array_log(tmp_path / "a.csv", 20, 10)
    source = CsvFile(file, mapping(tmp_path / "m.toml", 'array_job_id = "array"\narray_task_id = "task"\n'), page_b=700)
    result = import_source(store, path, source)
    assert (result.runs, result.bad, result.changed) == (200, 0, 200)
    assert sum(row["runs"] for row in store.ask("history_months")) == 200
    store.close()


def test_unknown_fields_and_rows_kept_aside_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command says which field is unknown in how many runs, with the first line, and so does its status."""
    file = array_log(tmp_path / "a.csv", 3, 2)
    into = str(tmp_path / "s" / "hub.duckdb")
    argv = ["history", "import", "--csv", str(file), "--mapping", str(mapping(tmp_path / "m.toml")), "--into", into]
    assert main(argv) == 0
    text = capsys.readouterr().out
    assert "state is unknown in 3 runs: first at line 2: state: the number '3' is not in [states]" in text
    assert "3 rows could not be read" in text
    assert "line 3: same job id and start as line 2" in text
    assert main(["history", "status", "--json", "--into", into]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [(row["field"], row["runs"]) for row in document["unread"]] == [("state", 3)]
    store = opened(Path(into))
    assert "Columns that cannot be read" in status_text(status_document(store, Path(into), T0), Look())
    assert store.ask("jobs_of_id", {"cluster": "old", "job_id": 1})[0]["gpus"] is None
    store.close()
