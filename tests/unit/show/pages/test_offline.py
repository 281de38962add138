"""A folder of pages: whole or not there, relative links only, and nobody's files are replaced."""

import re
from pathlib import Path

import msgspec
import pytest
from tests.unit.show.pages.drawings import HOSTILE, root_of
from tests.unit.show.pages.test_comparison_page import compared
from tests.unit.show.pages.test_view_page import Reading
from tests.unit.show.pages.view_documents import view

from gpuwaste.core.errors import UsageError
from gpuwaste.show.view_document import ViewDocument
from gpuwaste.show.view_text import comparison_csv
from gpuwaste.views.offline_pages import MARKER, Export, write_folder

EXPORTS: dict[str, Export] = {
    "csv": lambda document: f"rows,{len(document.rows)}\n",
    "facts.json": lambda document: msgspec.json.encode(document.facts).decode(),
}


def test_a_folder_has_a_page_for_each_view_and_opens_alone(tmp_path: Path) -> None:
    """Every link and stylesheet of every page is a file of the folder; the policy lets in nothing from elsewhere."""
    index = write_folder(tmp_path / "new" / "pages", [view(), view(view="queue", title="Queue")], EXPORTS)
    pages = sorted(index.parent.glob("*.html"))
    assert [page.name for page in pages] == [
        *("index.html", "queue.2.html", "queue.3.html", "queue.html"),
        *("waits.2.html", "waits.3.html", "waits.html"),
    ]
    for page in pages:
        found = Reading(page.read_text(encoding="utf-8"))
        links = [str(one["href"]) for one in found.all("a") + found.all("link") if one["href"] != "data:,"]
        assert {"gpuwaste.css", "charts.css", "index.html", "waits.html"} <= set(links)
        assert all((index.parent / link).is_file() for link in links)
        assert not [one for _, one in found.tags if "src" in one or "style" in one]
        assert not found.all("script")
        policies = [one["content"] for one in found.all("meta") if one.get("http-equiv") == "Content-Security-Policy"]
        assert len(policies) == 1
        assert str(policies[0]).startswith("default-src 'none'; style-src 'self' file:;")


def test_a_comparison_is_one_folder(tmp_path: Path) -> None:
    """Its page has what changed and both charts of each pair; both sides have their pages; every link is a file."""
    exports: dict[str, Export] = {"csv": comparison_csv}
    index = write_folder(tmp_path / "pages", [compared(), view(view="queue", title="Queue")], EXPORTS, exports)
    assert "Median wait: 10 min → 20 min" in Reading(index.read_text(encoding="utf-8")).said("p")
    found = Reading((index.parent / "waits.html").read_text(encoding="utf-8"))
    assert [drawing["width"] for drawing in found.charts()] == ["520", "328"] * 4
    own = {str(one["href"]) for one in found.all("a") if str(one["href"]).startswith("waits.")}
    assert own == {"waits.html", "waits.before.html", "waits.after.html", "waits.csv", "waits.svg", "waits.2.svg"}
    assert (index.parent / "waits.csv").read_text().startswith("id,means,unit,before,after")
    assert (index.parent / "waits.before.csv").read_text() == "rows,120\n"
    for name in ("waits.svg", "waits.2.svg"):
        words = "".join(root_of((index.parent / name).read_text(encoding="utf-8")).itertext())
        assert "Before" in words
        assert "After" in words
    for file in index.parent.glob("*.html"):
        links = Reading(file.read_text(encoding="utf-8"))
        assert all((index.parent / str(one["href"]).partition("#")[0]).is_file() for one in links.all("a"))


def test_charts_and_exports_are_files_of_their_own(tmp_path: Path) -> None:
    """Each chart is an SVG that stands alone, each export what its function returns."""
    folder = write_folder(tmp_path / "pages", [view()], EXPORTS).parent
    assert (folder / "waits.csv").read_text() == "rows,120\n"
    assert b"wait_p50_s" in (folder / "waits.facts.json").read_bytes()
    for name in ("waits.svg", "waits.2.svg"):
        assert ".role-main" in (folder / name).read_text(encoding="utf-8")
        root_of((folder / name).read_text(encoding="utf-8"))


def test_no_views_make_an_index_that_says_so(tmp_path: Path) -> None:
    """A folder of no views has its index."""
    assert "No data in this window." in write_folder(tmp_path / "pages", [], EXPORTS).read_text()


def test_our_own_folder_is_replaced_whole(tmp_path: Path) -> None:
    """What was written before is gone, and nothing is left beside the folder."""
    folder = tmp_path / "pages"
    folder.mkdir()
    write_folder(folder, [view()], EXPORTS)
    write_folder(folder, [view(view="queue")], EXPORTS)
    assert not (folder / "waits.html").exists()
    assert (folder / "queue.html").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["pages"]


@pytest.mark.parametrize("kind", ["folder", "file", "link"])
def test_what_is_not_ours_is_refused_and_stays(tmp_path: Path, kind: str) -> None:
    """A folder with other files, a file and a link are refused in one line that names them; nothing changes."""
    place, other = tmp_path / "pages", tmp_path / "other"
    other.mkdir()
    (other / "thesis.tex").write_text("years of work")
    if kind == "folder":
        place = other
    elif kind == "file":
        place.write_text("mine")
    else:
        place.symlink_to(other)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(UsageError, match=re.escape(str(place))) as error:
        write_folder(place, [view()], EXPORTS)
    assert "\n" not in str(error.value)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_failure_leaves_the_old_pages_and_nothing_else(tmp_path: Path) -> None:
    """An export that fails half-way changes nothing that is there."""
    folder = tmp_path / "pages"
    write_folder(folder, [view()], EXPORTS)

    def fails(document: ViewDocument) -> str:
        raise OSError(28, "No space left on device")

    with pytest.raises(UsageError, match="No space left on device"):
        write_folder(folder, [view(view="queue")], {"csv": fails})
    assert (folder / "waits.html").exists()
    assert (folder / MARKER).exists()
    assert [path.name for path in tmp_path.iterdir()] == ["pages"]


@pytest.mark.parametrize("name", ["../etc/passwd", "index", "", HOSTILE, "a" * 200, "waits.2"])
def test_a_name_that_is_no_page_is_refused(tmp_path: Path, name: str) -> None:
    """The name of a view is the name of files, so it is a plain word."""
    with pytest.raises(UsageError, match="cannot be the name of a page"):
        write_folder(tmp_path / "pages", [view(view=name)], EXPORTS)
    assert not list(tmp_path.iterdir())


def test_two_views_of_one_name_are_refused(tmp_path: Path) -> None:
    """The second would replace the pages of the first."""
    with pytest.raises(UsageError, match="once"):
        write_folder(tmp_path / "pages", [view(), view()], EXPORTS)
