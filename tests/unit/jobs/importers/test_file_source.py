"""Files of sacct of every kind: read, or refused with what to do."""

import json
import lzma
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.unit.jobs.importers.rows import opened

from gpuwaste.cli.main import main
from gpuwaste.core.errors import GpuwasteError, ParseError, SlurmError, UsageError
from gpuwaste.jobs.importers.bulk_import import import_again, import_source
from gpuwaste.jobs.importers.file_source import sacct_file
from gpuwaste.jobs.importers.sources.sacct_json import SacctJson
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.accounting.json_jobs import job_pages, looks_like_json
from gpuwaste.slurm.accounting.rest_jobs import parse_page
from gpuwaste.slurm.accounting.sacct_file import Cut

FIXTURES = Path(__file__).parents[3] / "fixtures"
RECORDED = FIXTURES / "slurmrestd" / "slurmdb_jobs_v0.0.45.json.xz"
ROW = "7|gpu1|2024-01-01T10:00:00|2024-01-01T10:00:10|COMPLETED\n"


def whole(data: bytes) -> list[object]:
    return list(parse_page(data, ""))


def items_of(data: bytes) -> list[object]:
    found: list[object] = json.loads(data.decode("utf-8", "surrogateescape"))["jobs"]
    return found


@pytest.mark.long
@pytest.mark.parametrize("page_b", [1, 20_000, 10**9])
def test_json_is_imported_however_it_is_cut(tmp_path: Path, page_b: int) -> None:
    """The runs of a recording of slurmrestd, as sacct --json writes them, without --cluster; twice changes nothing."""
    file = tmp_path / "jobs.json"
    file.write_bytes(lzma.decompress(RECORDED.read_bytes()))
    path = tmp_path / "s" / "hub.duckdb"
    store = opened(path)
    result = import_source(store, path, SacctJson(file, "", page_b=page_b))
    expected = [job for job in whole(file.read_bytes()) if isinstance(job, JobRecord)]
    assert (result.runs, result.bad) == (len({job.run_key for job in expected}), 0)
    assert {row["cluster"] for row in store.ask("history_months")} == {"gw"}
    assert import_source(store, path, SacctJson(file, "", page_b=page_b)).pages == 0
    assert [again.changed for again in import_again(store, path)] == [0]
    store.close()


def test_the_command_takes_json_packed_and_without_a_cluster(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--sacct FILE` knows the kind by its content."""
    argv = ["history", "import", "--sacct", str(RECORDED), "--into", str(tmp_path / "s" / "hub.duckdb"), "--json"]
    assert main(argv) == 0
    (result,) = json.loads(capsys.readouterr().out)["imports"]
    assert (result["kind"], result["runs"], result["bad"]) == ("sacct_json", 18, 0)


JSON = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.integers() | st.text(),
    lambda x: st.lists(x) | st.dictionaries(st.text(), x),
)


@given(st.lists(JSON, max_size=6), JSON, st.integers(1, 200), st.integers(1, 300), st.integers(0, 3))
def test_pieces_hold_what_the_document_holds(
    items: list[object], beside: object, step: int, page_b: int, indent: int
) -> None:
    """Any values, wherever the bytes and the pieces are cut."""
    data = json.dumps({"meta": beside, "jobs": items, "errors": []}, indent=indent or None, ensure_ascii=False).encode(
        "utf-8", "surrogatepass"
    )
    chunks = [data[at : at + step] for at in range(0, len(data), step)]
    cuts = list(job_pages(chunks, page_b))
    assert [item for cut in cuts for item in items_of(cut.data)] == items_of(data)


@example(b'\x00"', 2)
@given(st.binary(max_size=200), st.integers(0, 4000))
def test_no_json_raises_anything_else(junk: bytes, cut: int) -> None:
    """Damage is a ParseError, whatever it is, after the pieces before it."""
    good = b'{"jobs": [{"a": 1}, {"b": [2, "\xff"]}], "errors": []}'
    for data in (junk, b"{" + junk, good[:cut] + junk):
        try:
            cuts = list(job_pages([data], 1))
        except GpuwasteError:
            continue
        assert all(isinstance(found, Cut) for found in cuts)


def test_a_document_with_an_error_and_one_without_jobs_say_so() -> None:
    """What slurmdbd answered is the message."""
    with pytest.raises(SlurmError, match="Unable to connect"):
        list(job_pages([b'{"errors": [{"error": "Unable to connect"}]}'], 9))
    with pytest.raises(ParseError, match="no list of jobs in the JSON, only steps"):
        list(job_pages([b'{"steps": []}'], 9))
    with pytest.raises(ParseError, match="cut off"):
        list(job_pages([b'{"jobs": [{"a": 1}, {"b"'], 9))


def test_documents_that_were_joined_are_all_read() -> None:
    """As `sacct --json >> FILE` leaves them."""
    cuts = list(job_pages([b'{"jobs": [1]}\n{"jobs": [2]}\n'], 1))
    assert [json.loads(cut.data)["jobs"] for cut in cuts] == [[1], [2]]


def test_memory_is_that_of_a_piece_not_of_the_document() -> None:
    """Twenty megabytes of jobs are read in far fewer."""
    job = json.dumps({"name": "x" * 1000})
    chunks = [b'{"jobs": [', *((job + ",\n").encode() for _ in range(20_000)), job.encode(), b"]}"]
    tracemalloc.start()
    try:
        count = sum(1 for _ in job_pages(chunks, 100_000))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert count > 100
    assert peak < 10 * 2**20


def test_a_byte_that_is_no_utf8_costs_no_page() -> None:
    """It becomes the escape that the text form of sacct gets too."""
    page = b'{"jobs": [{"job_id": 7, "cluster": "gw", "name": "tr\xff", "time": {"submission": 1700000000}}]}'
    (job,) = whole(page)
    assert isinstance(job, JobRecord)
    assert job.name == r"tr\xff"


def test_a_column_of_the_cluster_makes_the_option_needless(tmp_path: Path) -> None:
    """Its rows name their clusters; one that does not is set aside; without the column the option is asked for."""
    file = tmp_path / "a.txt"
    file.write_text("JobID|Cluster|Submit|Start|State\n" + ROW + ROW.replace("7|gpu1", "8|"), encoding="utf-8")
    path = tmp_path / "s" / "hub.duckdb"
    store = opened(path)
    result = import_source(store, path, sacct_file(file, "", zone="UTC"))
    assert (result.runs, result.bad) == (1, 1)
    assert "Cluster" in result.first_bad[0].reason
    assert [row["cluster"] for row in store.ask("history_months")] == ["gpu1"]
    store.close()
    file.write_text("JobID|Submit\n7|2024-01-01T10:00:00\n", encoding="utf-8")
    with pytest.raises(UsageError, match=r"a\.txt: has no column Cluster: give it with --clusters NAME"):
        sacct_file(file, "", zone="UTC")


def test_a_bom_is_no_part_of_the_first_name(tmp_path: Path) -> None:
    """The header is known, and skipped."""
    path = tmp_path / "s" / "hub.duckdb"
    store = opened(path)
    result = import_source(store, path, sacct_file(FIXTURES / "sacct" / "bom_before_the_header.txt", "gw", zone="UTC"))
    assert (result.runs, result.bad, result.notes["headers"]) == (2, 0, 1)
    store.close()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"JobID           JobName  Partition\n------------ ---------- ----------\n7  a  b\n", ["padded with spaces"]),
        (b"JobID,JobName,Submit\n7,a,2024-01-01T10:00:00\n", ["separated by ','", "separator: --delimiter ','"]),
        (b"JobName;JobID;Submit\n", ["separator: --delimiter ';'"]),
        (b"JobID\tSubmit\n", [r"separator: --delimiter $'\t'"]),
        (b"JobID\x1fSubmit\n", [r"separator: --delimiter $'\x1f'"]),
        (b'"JobID","Submit"\n', ["--csv-file and --mapping"]),
        ("JobID|Submit\n".encode("utf-16"), ["UTF-16", "iconv"]),
        (b"7|a|b\n", ["no header line", "--format"]),
        (b"", ["no header line"]),
        (b"\xff" * 5000, ["no header line"]),
    ],
)
def test_what_is_no_output_of_sacct_p_is_named(tmp_path: Path, data: bytes, words: list[str]) -> None:
    """The one line says what the file is, and names sacct -P and --delimiter."""
    file = tmp_path / "a.txt"
    file.write_bytes(data)
    with pytest.raises(UsageError) as raised:
        sacct_file(file, "gw", zone="UTC")
    message = str(raised.value)
    assert message.startswith(f"{file}: ")
    assert "\n" not in message
    assert [word for word in [*words, "sacct -P", "--delimiter"] if word not in message] == []


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"CPUTimeRAW|ReqCPUS|ReqMem|Submit|State\n10|1|100Mc|x|TIMEOUT\n", ["columns lack JobIDRaw", "sacct -P"]),
        (b"User;Submit;State\nu;x;FAILED\n", ["has a header without JobID and JobIDRaw", "sacct -P"]),
        (
            b"JobId=68 UserId=u(1000) GroupId=g(1000) Name=a\n",
            ["jobcomp/filetxt", "sacct -P", "--csv-file and --mapping"],
        ),
        (b"JobId=68 JobName=a\n   UserId=u(1000)\n", ["scontrol", "sacct -P"]),
    ],
)
def test_advice_leads_to_a_file_that_is_read(tmp_path: Path, data: bytes, words: list[str]) -> None:
    """A header without the job's id, and pairs of other programs: no separator and no list of columns would help."""
    file = tmp_path / "a.txt"
    file.write_bytes(data)
    with pytest.raises(UsageError) as raised:
        sacct_file(file, "gw", zone="UTC")
    message = str(raised.value)
    assert [word for word in words if word not in message] == []
    assert "say " not in message
    assert "no header line" not in message


@pytest.mark.parametrize(("line", "is_json"), [(b'{"jobs": []}', True), (b"\xef\xbb\xbf {", True), (b"JobID|x", False)])
def test_json_is_known_by_its_first_line(line: bytes, is_json: bool) -> None:
    """Whatever the file's name is."""
    assert looks_like_json(line) == is_json
