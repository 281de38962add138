"""A store that a command makes: where nothing comes into it, nothing is left of it."""

import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from gpuwaste.core.clock import SystemClock
from gpuwaste.core.errors import GpuwasteError


@contextmanager
def new_file_or_none(path: Path) -> Iterator[None]:
    """Remove the store at `path`, with its pages, where it is new and the work in it fails before its first page.

    A store that was there before stays as it is, and so does one with a page: the same import goes on from there.
    """
    if path.exists():
        yield
        return
    missing = [folder for folder in (path.parent, *path.parent.parents) if not folder.exists()]
    try:
        yield
    except BaseException:
        if not _has_pages(path):
            _remove(path, missing)
        raise


def _has_pages(path: Path) -> bool:
    from gpuwaste.jobs.importers.history_store import HistoryStore

    if not path.exists():
        return False
    try:
        with closing(HistoryStore.open(path, SystemClock())) as store:
            return bool(store.kept_pages())
    except GpuwasteError:
        return path.stat().st_size > 0  # nobody knows: it stays


def _remove(path: Path, folders: list[Path]) -> None:
    from gpuwaste.jobs.importers.page_files import PageFiles

    for file in (path, path.with_name(path.name + ".wal")):
        file.unlink(missing_ok=True)
    shutil.rmtree(PageFiles(path).folder, ignore_errors=True)
    with suppress(OSError):
        for folder in folders:
            folder.rmdir()
