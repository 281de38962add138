"""`gpuwaste analyze`: from the hub and from files, printed and in a folder."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from msgspec import to_builtins
from tests.integration.cli.hub_double import HubDouble, running_hub
from tests.integration.hub.model_double import running_model
from tests.public_data import public
from tests.unit.show.pages.parsed import without_spans
from tests.unit.views.sites import viewed
from tests.unit.views.test_views import MONTH_LONG, busy

from gpuwaste.cli.main import main
from gpuwaste.core.typed import decode
from gpuwaste.jobs.machine import machine_reads
from gpuwaste.show.view_document import ComparisonDocument, Fact, ViewDocument, ViewEntry, ViewsDocument
from gpuwaste.slurm.site.cluster_model import NEVER
from gpuwaste.slurm.site.machine_events import NodeOutage
from gpuwaste.store.database import Database
from gpuwaste.views.compare import compare
from gpuwaste.views.view import all_views

COLUMNS = "Cluster|JobID|JobIDRaw|User|Account|Partition|State|Submit|Start|End|AllocCPUS|NNodes|AllocTRES|TimelimitRaw"
DAY = 86400


def sacct_text(days: int, cluster: str = "one") -> str:
    """Return what sacct -P prints of three jobs a day, in UTC."""
    lines = [COLUMNS]
    for day in range(days):
        for number in range(3):
            raw = day * 3 + number + 1
            at = f"2024-03-{day + 1:02d}T{number * 5:02d}"
            state = "FAILED" if number == 2 else "COMPLETED"
            lines.append(
                f"{cluster}|{raw}|{raw}|user{number}|acct|gpu|{state}|{at}:00:00|{at}:10:00|{at}:40:00|8|1|"
                f"cpu=8,gres/gpu=2|120"
            )
    return "".join(f"{line}\n" for line in lines)


@pytest.fixture
def sacct(tmp_path: Path) -> Path:
    """Return a file of four weeks."""
    file = tmp_path / "jobs.txt"
    file.write_text(sacct_text(28), encoding="utf-8")
    return file


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[HubDouble]:
    with running_hub(tmp_path) as double:
        one = viewed(busy(), "waits", MONTH_LONG)
        entries = [ViewEntry(name="waits", title="Waits", question="?")]
        double.answers = {
            "/v1/views": to_builtins(ViewsDocument(views=entries)),
            "/v1/views/waits": to_builtins(one.document),
            "/v1/views/waits/compare": to_builtins(compare(one, one)),
        }
        yield double


@pytest.fixture
def config(tmp_path: Path) -> list[str]:
    return ["--config", str(tmp_path / "gpuwaste.toml")]


def test_the_hub_is_asked_for_a_month(hub: HubDouble, config: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Each view that the hub has, of the last 30 days; sentences, table and notes are printed."""
    assert main(["analyze", *config]) == 0
    path, asked = hub.asked[-1]
    assert path == "/v1/views/waits"
    assert abs(int(asked["end"]) - int(asked["start"]) - 30 * DAY) <= 3601
    assert "clusters" not in asked
    said = capsys.readouterr().out
    assert all(word in said for word in ("Half of the jobs", "MEDIAN WAIT", "Jobs count in full"))


def test_the_hub_compares_the_month_before(
    hub: HubDouble, config: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """The other window is as long and ends where this one starts; clusters are passed on."""
    words = ["-S", "2024-03-11", "-E", "2024-03-21", "--compare", "previous", "-M", "a,b"]
    assert main(["analyze", *words, *config]) == 0
    path, asked = hub.asked[-1]
    assert path == "/v1/views/waits/compare"
    assert asked["other_end"] == asked["start"]
    assert int(asked["other_end"]) - int(asked["other_start"]) == 10 * DAY
    assert (asked["clusters"], asked["other_clusters"]) == ("a,b", "a,b")
    assert "No change is more than noise" in capsys.readouterr().out


def test_sacct_text_is_enough(sacct: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder has table, facts and document of every view; the totals are those of the file, cut at -S and -E."""
    out = tmp_path / "views"
    words = ["--sacct", str(sacct), "--time-zone", "UTC", "--config", "/dev/null"]
    assert main(["analyze", *words, "-o", str(out)]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3 * len(all_views())
    for name in all_views():
        view = decode((out / f"{name}.json").read_bytes(), ViewDocument)
        facts = decode((out / f"{name}.facts.json").read_bytes(), list[Fact])
        assert facts == view.facts
        header = (out / f"{name}.csv").read_text(encoding="utf-8").splitlines()[0]
        assert header == ",".join(column.name for column in view.columns)
    jobs = {fact.id: fact.value for fact in decode((out / "jobs.json").read_bytes(), ViewDocument).facts}
    assert (jobs["ended"], jobs["gpu_hours"]) == (84, 84.0)


def test_pages_open_from_a_folder(sacct: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With --html each view is a page with its CSV, JSON and charts beside it; what is printed is the first page."""
    out = tmp_path / "pages"
    words = ["--sacct", str(sacct), "--time-zone", "UTC", "--config", "/dev/null"]
    assert main(["analyze", *words, "--html", str(out)]) == 0
    assert capsys.readouterr().out == f"{out / 'index.html'}\n"
    for name in all_views():
        assert f'href="{name}.html"' in (out / "index.html").read_text(encoding="utf-8")
        assert f'href="{name}.csv"' in (out / f"{name}.html").read_text(encoding="utf-8")
        assert decode((out / f"{name}.json").read_bytes(), ViewDocument).view == name
    assert main(["analyze", *words, "--html", str(tmp_path)]) == 2
    assert "files that gpuwaste did not write" in capsys.readouterr().err


def test_a_comparison_is_one_folder_of_pages(sacct: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With --compare the page of a view is the comparison, with its charts and the pages of both sides."""
    out = tmp_path / "pages"
    words = ["--sacct", str(sacct), "--time-zone", "UTC", "--config", "/dev/null", "--view", "states"]
    window = ["-S", "2024-03-11", "-E", "2024-03-21", "--compare", "previous", "--html", str(out)]
    assert main(["analyze", *words, *window]) == 0
    assert "What changed" in (out / "states.html").read_text(encoding="utf-8")
    found = decode((out / "states.json").read_bytes(), ComparisonDocument)
    for side, document in (("before", found.before), ("after", found.after)):
        assert "How this is computed" in (out / f"states.{side}.html").read_text(encoding="utf-8")
        assert decode((out / f"states.{side}.json").read_bytes(), ViewDocument).start == document.start
    assert (out / "states.svg").read_text(encoding="utf-8").startswith("<svg")


def with_unread_rows(tmp_path: Path) -> tuple[Path, str]:
    """Return a file of a plain job and two lines of an array without its number, and the note on it."""
    at = "2024-03-01T00:00:00"
    rest = f"{at}|{at}|2024-03-01T01:00:00|COMPLETED"
    file = tmp_path / "some.sacct"
    rows = (f"c|100|u|{rest}|gres/gpu=2", f"c|101_1|u|{rest}|gres/gpu=8", f"c|101_2|u|{rest}|gres/gpu=8")
    file.write_text("\n".join(("Cluster|JobID|User|Submit|Start|End|State|AllocTRES", *rows, "")), encoding="utf-8")
    told = "2 rows of some.sacct could not be read: their jobs are not counted here."
    return file, f"{told} The first is line 3: JobID 101_1"


def test_rows_that_could_not_be_read_are_told_beside_the_figures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """2 of 18 GPU-hours are no total without a word: text, JSON, a kept store and a comparison say what is missing."""
    file, note = with_unread_rows(tmp_path)
    files = ["--sacct", str(file), "--time-zone", "UTC", "--view", "jobs", "--config", "/dev/null"]
    kept = tmp_path / "kept.duckdb"
    for words in (files, [*files, "--into", str(kept)], [*files, "--into", str(kept)], ["--store", str(kept)]):
        assert main(["analyze", *words, "--view", "jobs", "--config", "/dev/null"]) == 0
        assert note in " ".join(capsys.readouterr().out.split())
    assert main(["analyze", *files, "--json"]) == 0
    assert [found for found in json.loads(capsys.readouterr().out)["notes"] if found.startswith(note)]
    before = "2024-03-01,2024-03-02"
    assert main(["analyze", *files, "-S", "2024-03-01", "-E", "2024-03-03", "--compare", before]) == 0
    assert " ".join(capsys.readouterr().out.split()).count(note) == 1
    assert main(["analyze", *files, "--parsable"]) == 0
    out, err = capsys.readouterr()
    assert (note in out, note in err, len(err.splitlines())) == (False, True, 1)


def test_values_that_could_not_be_read_are_told_beside_the_figures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A log of halves of GPUs has fewer GPU-hours than its machine: the view says of which field, in how many runs."""
    log, mapping = tmp_path / "halves.csv", tmp_path / "map.toml"
    log.write_text("id,at,until,gpus\n1,1709251200,1709254800,0.5\n2,1709251200,1709254800,2\n", encoding="utf-8")
    mapping.write_text(
        'cluster = "c"\n[columns]\njob_id = "id"\nsubmit = "at"\nstart = "at"\nend = "until"\ngpus = "gpus"\n',
        encoding="utf-8",
    )
    words = ["--csv", str(log), "--mapping", str(mapping), "--view", "jobs", "--config", "/dev/null"]
    assert main(["analyze", *words]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "gpus cannot be read in 1 run of halves.csv: it is unknown there" in said


def test_start_and_end_cut(sacct: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """From the middle of a job to the middle of the next: half of each one's GPU-hours, one submit, one end."""
    first = 1_709_251_200 + 9 * DAY
    window = ["-S", f"uts{first + 25 * 60}", "-E", f"uts{first + 5 * 3600 + 25 * 60}"]
    words = ["--sacct", str(sacct), "--time-zone", "UTC", "--config", "/dev/null", "--view", "jobs", "--json"]
    assert main(["analyze", *words, *window]) == 0
    facts = _facts(capsys)
    assert (facts["gpu_hours"], facts["submitted"], facts["ended"]) == (1.0, 1, 1)


def test_an_import_is_kept_and_goes_on(sacct: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With --into the second run reads what was added to the file, and --store reads it without the file."""
    store = tmp_path / "store" / "history.duckdb"
    words = ["--time-zone", "UTC", "--config", "/dev/null", "--view", "states", "--json"]
    sacct.write_text(sacct_text(10), encoding="utf-8")
    seen = []
    for days in (10, 28):
        sacct.write_text(sacct_text(days), encoding="utf-8")
        assert main(["analyze", "--sacct", str(sacct), "--into", str(store), *words]) == 0
        seen.append(_facts(capsys)["ended"])
    assert main(["analyze", "--store", str(store), *words]) == 0
    assert [*seen, _facts(capsys)["ended"]] == [30, 84, 84]


def test_two_systems_stand_side_by_side(sacct: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two files of two clusters: -M names them, the first is what the second is compared with."""
    other = tmp_path / "other.txt"
    other.write_text(sacct_text(14, "two"), encoding="utf-8")
    words = ["--sacct", str(sacct), "--sacct", str(other), "--time-zone", "UTC", "--config", "/dev/null"]
    assert main(["analyze", *words, "-M", "one,two", "--compare", "clusters", "--view", "states", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["before"]["clusters"], found["after"]["clusters"]) == (["one"], ["two"])
    changes = {change["id"]: change for change in found["changes"]}
    assert (changes["ended"]["before"], changes["ended"]["after"]) == (84, 42)
    assert changes["failed_share"]["beyond_noise"] is False
    assert main(["analyze", *words, "-M", "one", "--view", "states", "--json"]) == 0
    assert _facts(capsys)["ended"] == 84


def test_rows_for_programs(sacct: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--parsable prints the table's cells with | between; -n leaves out the header."""
    words = ["analyze", "--sacct", str(sacct), "--time-zone", "UTC", "--config", "/dev/null", "--view", "kinds", "-p"]
    assert main(words) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "kind|runs|share|gpu_hours|gpu_share"
    assert lines[1].startswith("array tasks|0|0|")
    assert main([*words, "-n"]) == 0
    assert capsys.readouterr().out.splitlines() == lines[1:]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--view", "nothing"], "expected one of balance, energy, hours, jobs"),
        (["-M", "elsewhere"], "no jobs of cluster 'elsewhere': clusters with jobs are one"),
        (["--compare", "previous"], "give -S and -E"),
        (["--compare", "clusters"], "name two clusters"),
        (["--compare", "yesterday"], "expected previous, clusters or START,END"),
        (["--compare", "2024-03-05,2024-03-01"], "is not before"),
        (["-S", "2024-03-05", "-E", "2024-03-01"], "is not before"),
    ],
)
def test_wrong_words_are_one_clear_line(
    words: list[str], said: str, sacct: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is wrong, and what is expected."""
    assert main(["analyze", "--sacct", str(sacct), "--time-zone", "UTC", "--config", "/dev/null", *words]) != 0
    err = capsys.readouterr().err
    assert said in err
    assert len(err.splitlines()) == 1


@pytest.mark.long
def test_a_public_log_has_its_own_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    """KTH-SP2: 28,476 jobs of 214 users, of which 7,946 failed, as its description says."""
    log = public("swf/KTH-SP2-1996-2.1-cln.swf.xz")
    words = ["analyze", "--swf", str(log), "--view", "states", "--json", "--config", "/dev/null"]
    assert main(words) == 0
    facts = _facts(capsys)
    assert (facts["ended"], facts["users"]) == (28_476, 214)
    assert facts["failed_share"] == pytest.approx(7_946 / 28_476)


def test_a_log_without_waits_has_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its waits and its queue are not known, which a note says; they are not 0."""
    log = tmp_path / "log.swf"
    rows = (f"{n} {n * 600} -1 60 4 -1 -1 4 120 -1 1 1 1 -1 1 -1 -1 -1" for n in range(1, 50))
    log.write_text("; UnixStartTime: 0\n" + "\n".join(rows) + "\n", encoding="utf-8")
    for name in ("waits", "queue"):
        assert main(["analyze", "--swf", str(log), "--view", name, "--json", "--config", "/dev/null"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert (found["facts"], found["rows"], found["narrative"]) == ([], [], [])
        assert "records no waits" in found["notes"][0]


def _facts(capsys: pytest.CaptureFixture[str]) -> dict[str, float]:
    return {fact["id"]: fact["value"] for fact in json.loads(capsys.readouterr().out)["facts"]}


def test_files_are_analyzed_in_the_words_of_a_model(
    sacct: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A configured model words what is written; the numbers are those of the rules, and the page says so."""
    with running_model(lambda text: f"Overall, {text[0].lower()}{text[1:]}") as model:
        own = tmp_path / "own.toml"
        keys = model.config()
        own.write_text(f'[analytics]\nmodel_url = "{keys.model_url}"\nmodel = "{keys.model}"\n', encoding="utf-8")
        words = ["analyze", "--sacct", str(sacct), "--time-zone", "UTC", "--view", "waits", "--config", str(own)]
        assert main([*words, "-o", str(tmp_path / "views"), "--html", str(tmp_path / "pages")]) == 0
    assert decode((tmp_path / "views" / "waits.json").read_bytes(), ViewDocument).model == "liar"
    page = without_spans((tmp_path / "pages" / "waits.html").read_text(encoding="utf-8"))
    assert "<h1>Overall, half of the jobs that started waited 10 min or less.</h1>" in page
    assert "The language model liar worded" in page
    assert "liar" not in capsys.readouterr().err


def test_a_model_that_is_away_costs_one_line(
    sacct: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """Where the model does not answer, every view is there in the sentences by rules, and one line says why."""
    own = tmp_path / "own.toml"
    own.write_text('[analytics]\nmodel_url = "http://127.0.0.1:1/v1"\nmodel = "m"\n', encoding="utf-8")
    assert main(["analyze", "--sacct", str(sacct), "--time-zone", "UTC", "--config", str(own)]) == 0
    assert "Half of the jobs" in capsys.readouterr().out
    assert (
        sum("cannot get sentences of views from the language model" in record.getMessage() for record in caplog.records)
        == 1
    )


def test_the_machine_of_files_is_kept_with_their_jobs(
    sacct: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of slurm.conf and of printed events; a row that cannot be read is a note, and with a hub there is one line."""
    machine, events, store = tmp_path / "slurm.conf", tmp_path / "events.txt", tmp_path / "s.duckdb"
    machine.write_text("ClusterName=one\nNodeName=gpu[1-2] Gres=gpu:4\nPartitionName=gpu Nodes=ALL\n", encoding="utf-8")
    events.write_text("NodeName|TimeStart|TimeEnd|State\ngpu1|1709300000|Unknown|DOWN\ngpu2|?\n", encoding="utf-8")
    options = ["--sacct", str(sacct), "--into", str(store), "--machine", str(machine), "--machine", str(events)]
    assert main(["analyze", *options, "--view", "jobs"]) == 0
    assert "1 rows of events.txt could not be read. The first: line 3" in capsys.readouterr().out
    with closing(Database.open(store, "hub")) as db:
        nodes = machine_reads.machine_nodes(db, "one", 0, NEVER)
        assert [(node.node, node.gpus, node.partitions) for node in nodes] == [("gpu1", 4, "gpu"), ("gpu2", 4, "gpu")]
        assert machine_reads.outages(db, "one", 0, NEVER) == [NodeOutage("gpu1", 1709300000, None, "DOWN")]
    assert main(["analyze", "--machine", str(machine)]) != 0
    assert "--machine: only with jobs from files" in capsys.readouterr().err
