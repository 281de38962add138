"""`make data` against an HTTP server: whole files come, anything else is one line and leaves no file behind."""

import gzip
import hashlib
import http.server
import lzma
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tools.data.__main__ import main
from tools.data.catalog import read_catalog
from tools.data.places import find, own_place, places

ROOT = Path(__file__).parents[3]
LOG = b"; a log\n" + b"1 2 3\n" * 50_000


class Publisher(http.server.ThreadingHTTPServer):
    """Serves `files`; the first answer to a path in `cut` ends after that many bytes."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files: dict[str, bytes] = {}
        self.cut: dict[str, int] = {}
        self.ranges: list[str] = []
        self.knows_ranges = True


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Publisher

    def do_GET(self) -> None:
        """Answer with the file, from the place that is asked for."""
        data, asked = self.server.files.get(self.path), self.headers.get("Range", "")
        if data is None:
            self.send_error(404)
            return
        begin = int(asked[6:-1]) if asked and self.server.knows_ranges else 0
        self.server.ranges.append(asked)
        self.send_response(206 if begin else 200)
        if begin:
            self.send_header("Content-Range", f"bytes {begin}-{len(data) - 1}/{len(data)}")
        self.send_header("Content-Length", str(len(data) - begin))
        self.end_headers()
        self.wfile.write(data[begin : self.server.cut.pop(self.path, len(data))])

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


@pytest.fixture
def publisher() -> Iterator[Publisher]:
    """Serve until the test ends."""
    with Publisher() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


class Case:
    """A catalogue of one log, and what `make data` says and leaves."""

    def __init__(self, directory: Path, url: str, data: bytes = LOG, form: str = "gzip") -> None:
        self.into = directory / "data"
        self._catalog = directory / "catalog.tsv"
        row = ("swf/a.swf.xz", hashlib.sha256(data).hexdigest(), str(len(data)), form, url, "free")
        self._catalog.write_text("name\tsha256\tbytes\tform\turl\tterms\n" + "\t".join(row) + "\n")

    def run(self) -> int:
        """Fetch."""
        return main(["--into", str(self.into), "--catalog", str(self._catalog)])

    def left(self) -> list[str]:
        """Return the names of all files."""
        return sorted(path.name for path in self.into.rglob("*") if path.is_file())


@pytest.fixture
def case(publisher: Publisher, tmp_path: Path) -> Case:
    """Return a published log, packed with gzip."""
    publisher.files["/a.swf.gz"] = gzip.compress(LOG)
    return Case(tmp_path, f"http://127.0.0.1:{publisher.server_port}/a.swf.gz")


def test_a_log_is_packed_as_its_name_says_and_fetched_once(
    case: Case, publisher: Publisher, capsys: pytest.CaptureFixture[str]
) -> None:
    """A gzip file becomes the .xz that the tests read; the second run asks for nothing; a damaged one comes again."""
    assert case.run() == 0
    assert lzma.decompress((case.into / "swf/a.swf.xz").read_bytes()) == LOG
    assert case.left() == ["a.swf.xz"]
    assert case.run() == 0
    assert len(publisher.ranges) == 1
    assert "there already" in capsys.readouterr().out
    (case.into / "swf/a.swf.xz").write_bytes(b"damaged")
    assert case.run() == 0
    assert lzma.decompress((case.into / "swf/a.swf.xz").read_bytes()) == LOG


def test_a_wrong_hash_is_refused(case: Case, publisher: Publisher, capsys: pytest.CaptureFixture[str]) -> None:
    """Other content than the catalogue's is one line with both hashes, and is not kept."""
    publisher.files["/a.swf.gz"] = gzip.compress(LOG.replace(b"1 2 3", b"1 2 4"))
    assert case.run() == 1
    said = capsys.readouterr().err
    assert re.fullmatch(r"make data: swf/a\.swf\.xz: \S+ has SHA-256 \w{64}, not \w{64}: damaged .*\n", said)
    assert case.left() == []


@pytest.mark.parametrize("published", [b"", b"<html>moved</html>", gzip.compress(LOG)[:-20]])
def test_what_is_no_gzip_file_is_refused(
    case: Case, publisher: Publisher, published: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    """An empty answer, a page in the log's place and a file that was published cut off are refused by their hash."""
    publisher.files["/a.swf.gz"] = published
    assert case.run() == 1
    assert "not kept" in capsys.readouterr().err
    assert case.left() == []


@pytest.mark.parametrize("knows_ranges", [True, False])
def test_a_connection_that_ends_early_goes_on(case: Case, publisher: Publisher, *, knows_ranges: bool) -> None:
    """The rest is asked for from where it stopped; a server that knows no ranges sends all of it again."""
    publisher.knows_ranges = knows_ranges
    publisher.cut["/a.swf.gz"] = 100
    assert case.run() == 0
    assert publisher.ranges == ["", "bytes=100-"]
    assert lzma.decompress((case.into / "swf/a.swf.xz").read_bytes()) == LOG


def test_what_an_earlier_run_began_goes_on(case: Case, publisher: Publisher) -> None:
    """The part that a killed run left is not fetched again."""
    part = case.into / "swf" / ".a.swf.xz.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(publisher.files["/a.swf.gz"][:200])
    assert case.run() == 0
    assert publisher.ranges == ["bytes=200-"]
    assert case.left() == ["a.swf.xz"]


def test_a_file_without_end_is_not_fetched_to_its_end(
    case: Case, publisher: Publisher, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is larger than its content could be packed is left, and what expands without end is cut."""
    publisher.files["/a.swf.gz"] = b"x" * (len(LOG) + 200_000)
    assert case.run() == 1
    assert "is larger than its" in capsys.readouterr().err
    publisher.files["/a.swf.gz"] = gzip.compress(bytes(200_000_000), 1)[: len(LOG)]
    assert case.run() == 1
    assert case.left() == []


def test_a_dead_host_is_asked_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each file of a host that does not answer is a line; the first alone costs a wait."""
    case = Case(tmp_path, "http://127.0.0.1:1/a.swf.gz")
    table = tmp_path / "catalog.tsv"
    table.write_text(table.read_text() + table.read_text().splitlines()[1].replace("a.swf", "b.swf") + "\n")
    assert case.run() == 1
    first, second = capsys.readouterr().err.splitlines()
    assert "no answer from http://127.0.0.1:1/a.swf.gz" in first
    assert "is this host online?" in first
    assert second == "make data: swf/b.swf.xz: not asked for: 127.0.0.1:1 does not answer"


def test_a_file_that_was_moved_is_named(case: Case, publisher: Publisher, capsys: pytest.CaptureFixture[str]) -> None:
    """An error of the server is one line with the status."""
    publisher.files.clear()
    assert case.run() == 1
    assert "answers 404: its publisher may have moved it" in capsys.readouterr().err


def test_the_catalogue_names_what_the_files_here_hold() -> None:
    """Each name is one that tests read, its address is fixed by a commit or a version, and a copy here is the same."""
    items = read_catalog()
    assert len({item.name for item in items}) == len(items) > 40
    for item in items:
        assert re.search(r"/[0-9a-f]{40}/|-\d+\.\d+-cln\.swf\.gz$", item.url), item.url
        if (path := find(item.name)) is not None:
            data = path.read_bytes()
            plain = lzma.decompress(data) if path.suffix == ".xz" else data
            assert (hashlib.sha256(plain).hexdigest(), len(plain)) == (item.sha256, item.size), item.name


def test_places_are_looked_at_in_their_order(tmp_path: Path) -> None:
    """../shared/data comes first, then the folder that `make data` fills."""
    root = tmp_path / "checkout"
    shared, own = tmp_path / "shared" / "data", root / "data"
    assert list(places({}, root)) == []
    for place in (own, shared):
        place.mkdir(parents=True)
        (place / "x").write_text(place.name)
    assert next(places({}, root)) == shared
    assert find("x", {}, root) == shared / "x"
    (shared / "x").unlink()
    assert find("x", {}, root) == own / "x"
    assert own_place({"GPUWASTE_DATA": "/srv/logs"}, root) == Path("/srv/logs")
