"""A folder of pages that opens from disk: no server, no script, relative links only."""

import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, tzinfo
from functools import partial
from importlib.resources import files
from pathlib import Path
from re import compile as pattern
from typing import Any, Final

from gpuwaste.analytics.document import ViewDocument
from gpuwaste.core.errors import UsageError
from gpuwaste.core.files import TEMPORARY, sync_directory, write_whole
from gpuwaste.core.version import own_version
from gpuwaste.web.charts.draw import chart_file
from gpuwaste.web.charts.times import zone_name
from gpuwaste.web.environment import Frame, page
from gpuwaste.web.pages.view import ROWS, ViewBody, view_body, window_words

Export = Callable[[ViewDocument], str]

MARKER: Final = ".gpuwaste-pages"
"""The file that says that a folder was written by us, and may be replaced."""

_STYLES: Final = ("gpuwaste.css", "charts.css")
_NAME: Final = pattern(r"[a-z0-9_][a-z0-9_-]{0,63}")
_POLICY: Final = "default-src 'none'; style-src 'self' file:; img-src 'self' data:; base-uri 'none'; form-action 'none'"


def write_folder(
    folder: Path, documents: Sequence[ViewDocument], exports: Mapping[str, Export], zone: tzinfo = UTC
) -> Path:
    """Write the pages of these views into a folder and return its index.html.

    `exports` gives further files by their ending (csv, facts.json), which the pages link. The folder is whole or not
    there: it is written under another name and renamed. One that is there is replaced only where it is empty or was
    written by this function. Raises UsageError.
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
            _write(made, documents, exports, zone)
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


def _write(folder: Path, documents: Sequence[ViewDocument], exports: Mapping[str, Export], zone: tzinfo) -> None:
    folder.chmod(0o755)
    for style in _STYLES:
        write_whole(folder / style, files("gpuwaste.web").joinpath("static", style).read_bytes())
    first = [_body(document, 1, exports, zone) for document in documents]
    common = {
        "policy": _POLICY,
        "views": [(body.name, body.title) for body in first],
        "version": own_version(),
        "zone": zone_name(zone),
    }
    for document in documents:
        _write_view(folder, document, exports, zone, common)
    window = window_words(documents[0], zone) if documents else ""
    headline = f"{len(documents)} views of the system" if len(documents) != 1 else "One view of the system"
    index = page("offline_index", Frame(), **common, current="", bodies=first, window=window, headline=headline)
    _text(folder / "index.html", index)
    _text(folder / MARKER, "Written by gpuwaste; it replaces this folder when it writes it again.\n")


def _write_view(
    folder: Path, document: ViewDocument, exports: Mapping[str, Export], zone: tzinfo, common: Mapping[str, Any]
) -> None:
    for number in range(1, max(1, -(-len(document.rows) // ROWS)) + 1):
        body = _body(document, number, exports, zone)
        text = page("offline_view", Frame(), **common, current=document.view, view=body)
        _text(folder / _page_name(document.view, number), text)
    for index, chart in enumerate(document.charts):
        _text(folder / _chart_name(document.view, index), chart_file(chart, zone))
    for ending, export in exports.items():
        _text(folder / f"{document.view}.{ending}", export(document))


def _body(document: ViewDocument, number: int, exports: Mapping[str, Export], zone: tzinfo) -> ViewBody:
    links = {ending: f"{document.view}.{ending}" for ending in exports}
    for index in range(len(document.charts)):
        name = "svg" if len(document.charts) == 1 else f"svg {index + 1}"
        links[name] = _chart_name(document.view, index)
    return view_body(document, number, partial(_page_name, document.view), links, zone)


def _page_name(view: str, number: int) -> str:
    return f"{view}.html" if number == 1 else f"{view}.{number}.html"


def _chart_name(view: str, index: int) -> str:
    return f"{view}.svg" if index == 0 else f"{view}.{index + 1}.svg"


def _text(path: Path, text: str) -> None:
    write_whole(path, text.encode("utf-8", "backslashreplace"))


def _replace(made: Path, folder: Path) -> None:
    """Put the new folder in the place of the old one, which is removed after that."""
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
