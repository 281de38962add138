"""`gpuwaste history`: what it says, its documents and its exit codes."""

import json
from pathlib import Path

import pytest

from gpuwaste.cli.job_sources import local_zone
from gpuwaste.cli.main import main

ROWS = (
    "JobID|JobIDRaw|User|Submit|Start|End|ElapsedRaw|State\n"
    "7|7|alice|2024-07-01T12:00:00|2024-07-01T12:00:10|2024-07-01T12:01:10|60|COMPLETED\n"
    "7.batch|7.batch||2024-07-01T12:00:10|2024-07-01T12:00:10|2024-07-01T12:01:10|60|COMPLETED\n"
    "8|8|bob|2024-06-30T12:00:00|soon|Unknown|0|PENDING\n"
    "9|9|bob|2024-06-30T12:00:00|2024-06-30T12:00:00|Unknown|0|RUNNING\n"
)


@pytest.fixture
def into(tmp_path: Path) -> list[str]:
    """Return the option that names the store."""
    return ["--into", str(tmp_path / "state" / "hub.duckdb")]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return a file of sacct -P."""
    path = tmp_path / "sacct.txt"
    path.write_text(ROWS)
    return path


def _code(words: list[str]) -> object:
    """Return the exit code; argparse ends the process itself."""
    try:
        return main(words)
    except SystemExit as ended:
        return ended.code


def asked(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, object]:
    assert main(["history", *words, "--json"]) == 0
    document: dict[str, object] = json.loads(capsys.readouterr().out)
    return document


def test_import_and_status_tell_the_same(file: Path, into: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Runs by month and state, what stands where, open runs and rows kept aside with their reasons."""
    sacct = ["--sacct", str(file), "--clusters", "gw", "--time-zone", "Europe/Oslo"]
    assert main(["history", "import", *sacct, *into]) == 0
    printed = capsys.readouterr()
    assert "2 runs in" in printed.out
    assert "1 row could not be read; see gpuwaste history status" in printed.out
    assert "line 4: Start, End" in printed.out
    assert printed.err == ""
    status = asked(capsys, "status", *into)
    assert status["runs"] == [
        {"cluster": "gw", "month": "2024-06", "state": "RUNNING", "runs": 1},
        {"cluster": "gw", "month": "2024-07", "state": "COMPLETED", "runs": 1},
    ]
    assert status["open"] == [{"cluster": "gw", "open": 1, "runaway": 1}]
    assert status["marks"] == {f"sacct:{file}": len(ROWS)}
    assert status["quarantined"] == 1
    assert main(["history", "status", *into]) == 0
    text = capsys.readouterr().out
    for words in ("2024-07", "COMPLETED", "1 run without an end, 1 of them a day past", f"byte {len(ROWS):,}", "Start"):
        assert words in text


def test_a_second_import_says_that_nothing_is_new(
    file: Path, into: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """And with --again the kept pages are parsed once more."""
    words = ["import", "--sacct", str(file), "--clusters", "gw", *into]
    asked(capsys, *words)
    assert main(["history", *words]) == 0
    assert "nothing new" in capsys.readouterr().out
    again = asked(capsys, "import", "--again", *into)
    assert again["again"] is True
    assert isinstance(again["imports"], list)
    assert [(i["runs"], i["changed"], i["bad"]) for i in again["imports"]] == [(2, 0, 1)]


def test_csv_with_a_mapping(tmp_path: Path, into: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """The mapping names the cluster; newlines in quotes and rows of another width are no trouble."""
    jobs, mapping = tmp_path / "jobs.csv", tmp_path / "map.toml"
    jobs.write_text('id,at,note\n1,2024-01-01 00:00:00,"a\nb"\n2,x\n3,2024-01-02,\n')
    mapping.write_text('cluster = "old"\n[columns]\njob_id = "id"\nsubmit = "at"\nname = "note"\n')
    document = asked(capsys, "import", "--csv", str(jobs), "--mapping", str(mapping), *into)
    assert isinstance(document["imports"], list)
    (done,) = document["imports"]
    assert (done["cluster"], done["runs"], done["bad"]) == ("old", 2, 1)
    assert done["first_bad"][0]["line"] == 4


@pytest.mark.long
@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["import", "--sacct", "{none}", "--clusters", "gw"], 2, "cannot be read: No such file"),
        (["import", "--sacct", "{file}"], 2, "has no column Cluster: give it with --clusters NAME"),
        (["import", "--sacct", "{rows}", "--clusters", "gw"], 2, "no header line: give the columns with --format"),
        (["import", "--sacct", "{rows}", "--clusters", "gw", "--format", "JobID,State"], 2, "columns lack Submit"),
        (["import", "--sacct", "{file}", "--clusters", "gw", "--time-zone", "Mars"], 2, "time zone 'Mars'"),
        (["import", "--swf", "{file}"], 3, "no job in its first 5 rows: line 1: "),
        (["import", "--swf", "{empty}"], 3, "empty: nothing to import"),
        (["import", "--csv", "{file}"], 2, "--mapping TOML must name"),
        (["import", "--again"], 3, "no raw pages in this store"),
        (["import", "--slurmrestd", "--clusters", "gw"], 2, "set common.slurmrestd_url"),
        (["import", "--sacct-live", "-S", "2024-02-01", "-E", "2024-01-01"], 2, "is not before"),
        (["import"], 2, "one of the arguments"),
        (["status"], 3, "no store in this place"),
    ],
)
def test_what_cannot_be_is_one_line(
    words: list[str], code: int, message: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What, where and what to do."""
    tmp_path = file.parent
    (tmp_path / "rows").write_text(ROWS.partition("\n")[2])
    (tmp_path / "empty").touch()
    (tmp_path / "gpuwaste.toml").touch()
    paths = {"file": file, "none": tmp_path / "none", "rows": tmp_path / "rows", "empty": tmp_path / "empty"}
    words = [word.format(**paths) for word in words]
    into = ["--into", str(tmp_path / "state" / "hub.duckdb"), "--config", str(tmp_path / "gpuwaste.toml")]
    assert _code(["history", *words, *into]) == code
    printed = capsys.readouterr()
    assert printed.out == ""
    assert message in printed.err
    assert printed.err.count("\n") == 1


def test_the_hosts_zone_has_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """TZ comes first, as for every program."""
    monkeypatch.setenv("TZ", ":Europe/Oslo")
    assert local_zone() == "Europe/Oslo"
    monkeypatch.setenv("TZ", "")
    assert local_zone()
