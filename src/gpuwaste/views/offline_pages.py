"""A folder of pages that opens from disk: no server, no script, relative links only."""

import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, tzinfo
from functools import partial
from importlib.resources import files
from pathlib import Path
from re import compile as pattern
from types import MappingProxyType
from typing import Any, Final

from gpuwaste.core.errors import UsageError
from gpuwaste.core.files import TEMPORARY, sync_directory, write_whole
from gpuwaste.core.version import own_version
from gpuwaste.show.charts.draw import chart_file
from gpuwaste.show.charts.time_axis import zone_name
from gpuwaste.show.environment import Frame, page
from gpuwaste.show.page_words import cut
from gpuwaste.show.view_document import ComparisonDocument, ViewDocument
from gpuwaste.show.view_page import ROWS, ViewBody, link_names, view_body
from gpuwaste.views.comparison_page import ComparisonBody, comparison_body, pair_files
from gpuwaste.views.dashboard import dashboard_of

Document = ViewDocument | ComparisonDocument
Export = Callable[[Any], str]

MARKER: Final = ".gpuwaste-pages"
"""The file that marks a folder as written by gpuwaste: it may be replaced."""

_STYLES: Final = ("gpuwaste.css", "charts.css")
_NAME: Final = pattern(r"[a-z0-9_][a-z0-9_-]{0,63}")
_POLICY: Final = "default-src 'none'; style-src 'self' file:; img-src 'self' data:; base-uri 'none'; form-action 'none'"


def write_folder(
    folder: Path,
    documents: Sequence[Document],
    exports: Mapping[str, Export],
    compared: Mapping[str, Export] = MappingProxyType({}),
    zone: tzinfo = UTC,
) -> Path:
    """Write the pages of these views and comparisons into a folder and return its index.html.

    `exports` has further files of a view by their ending (csv, facts.json), which the pages link; `compared` those of a
    comparison, which has pages of both of its sides. The folder is complete or missing: it is written under another
    name and renamed. An existing one is replaced only if it is empty or was written by this function. Raises
    UsageError.
    """
    names = [document.view for document in documents]
    for name in names:
        if not _NAME.fullmatch(name) or name == "index" or names.count(name) > 1:
            raise UsageError(f"view {name[:80]!r}: cannot be the name of a page; pass each view once")
    _refuse_foreign(folder)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=f"{TEMPORARY}pages-", dir=folder.parent))
        try:
            _Folder(made, exports, compared, zone).write(documents)
            _replace(made, folder)
        finally:
            shutil.rmtree(made, ignore_errors=True)
    except OSError as error:
        raise UsageError(f"{folder}: pages cannot be written: {error.strerror}") from error
    return folder / "index.html"


def _refuse_foreign(folder: Path) -> None:
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise UsageError(f"{folder}: exists but is not a folder; name another one")
    if folder.is_dir() and not (folder / MARKER).is_file() and any(folder.iterdir()):
        raise UsageError(f"{folder}: contains files that gpuwaste did not write; name a new or an empty folder")


@dataclass(frozen=True, slots=True)
class _Folder:
    """The folder being written."""

    path: Path
    exports: Mapping[str, Export]
    compared: Mapping[str, Export]
    zone: tzinfo

    def write(self, documents: Sequence[Document]) -> None:
        """Write every page and file."""
        self.path.chmod(0o755)
        for style in _STYLES:
            write_whole(self.path / style, files("gpuwaste.show").joinpath("static", style).read_bytes())
        common = {
            "policy": _POLICY,
            "views": [(document.view, cut(document.title)) for document in documents],
            "version": own_version(),
            "zone": zone_name(self.zone),
        }
        for document in documents:
            if isinstance(document, ComparisonDocument):
                self._comparison(document, common)
            else:
                self._view(document.view, document, common)
        board = dashboard_of(documents, lambda name: _page_name(name, 1), self.zone)
        index = page("offline_index", Frame(), **common, current="", board=board)
        _text(self.path / "index.html", index)
        _text(self.path / MARKER, "Written by gpuwaste, which replaces this folder when it writes the pages again.\n")

    def _view(self, name: str, document: ViewDocument, common: Mapping[str, Any]) -> None:
        """Write the pages of a view and its files."""
        charts = [partial(chart_file, chart, self.zone) for chart in document.charts]
        links = self._files(name, document, self.exports, charts)
        bodies = [
            view_body(document, number, partial(_page_name, name), links, self.zone)
            for number in range(1, max(1, -(-len(document.rows) // ROWS)) + 1)
        ]
        for number, body in enumerate(bodies, 1):
            self._page(_page_name(name, number), "view_body.html", body, common)

    def _comparison(self, document: ComparisonDocument, common: Mapping[str, Any]) -> None:
        """Write the page of a comparison, its files, and the pages of both sides."""
        sides = [f"{document.view}.before", f"{document.view}.after"]
        for name, side in zip(sides, (document.before, document.after), strict=True):
            self._view(name, side, common)
        links = self._files(document.view, document, self.compared, pair_files(document, self.zone))
        body = comparison_body(document, (_page_name(sides[0], 1), _page_name(sides[1], 1)), links, self.zone)
        self._page(_page_name(document.view, 1), "comparison_body.html", body, common)

    def _files(
        self, name: str, document: Document, exports: Mapping[str, Export], charts: Sequence[Callable[[], str]]
    ) -> dict[str, str]:
        """Write the exports and the charts of a document; returns the links to them."""
        for ending, export in exports.items():
            _text(self.path / f"{name}.{ending}", export(document))
        for number, chart in enumerate(charts, 1):
            _text(self.path / (f"{name}.svg" if number == 1 else f"{name}.{number}.svg"), chart())
        return {words: f"{name}.{ending}" for ending, words in link_names(tuple(exports), len(charts)).items()}

    def _page(self, file: str, template: str, body: ViewBody | ComparisonBody, common: Mapping[str, Any]) -> None:
        text = page("offline_view", Frame(), **common, current=body.name, view=body, body=template)
        _text(self.path / file, text)


def _page_name(view: str, number: int) -> str:
    return f"{view}.html" if number == 1 else f"{view}.{number}.html"


def _text(path: Path, text: str) -> None:
    write_whole(path, text.encode("utf-8", "backslashreplace"))


def _replace(made: Path, folder: Path) -> None:
    """Replace the old folder by the new one, and then remove the old one."""
    old: Path | None = None
    if folder.exists():
        _refuse_foreign(folder)
        old = Path(tempfile.mkdtemp(prefix=f"{TEMPORARY}old-", dir=folder.parent)) / folder.name
        folder.rename(old)
    try:
        made.rename(folder)
    except OSError:
        if old is not None:
            old.rename(folder)
        raise
    sync_directory(folder.parent)
    if old is not None:
        shutil.rmtree(old.parent, ignore_errors=True)
