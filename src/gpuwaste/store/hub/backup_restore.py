"""Restores a backup as a hub's store: it is checked completely first, then one rename makes it the store.

The previous store is kept next to it as hub.duckdb.before-restore. A restore that is killed before the rename leaves
the old store in place, except for changes that were still in its log; running it again completes the work.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from gpuwaste.core.errors import StoreError
from gpuwaste.core.files import open_plain, sync_directory
from gpuwaste.core.owner import as_owner, become_owner
from gpuwaste.store.database import Database, schema_number
from gpuwaste.store.hub.backup_format import STORE, About, pages_folder, read_backup
from gpuwaste.store.hub.store_file import forget_moved, nobody_has

BEFORE: Final = ".before-restore"
_FOLDER: Final = "restore.unfinished"
_CORRECTIONS: Final = "corrections.npz"
SAVED_HISTORY: Final = "history"  # made from the store; the hub makes it again
_COUNTED: Final = ("jobs", "hours", "days", "events", "verdicts", "quarantine")


def open_source(source: Path) -> BinaryIO:
    """Open a backup, as the owner of its directory, if that is not root. Raises StoreError, ConfigError."""
    with as_owner(source, sticky=True) as owner:
        try:
            return open_plain(source)
        except OSError as error:
            whose = (
                "" if owner is None else f" by {owner.name}, the owner of its directory: copy it to a directory of root"
            )
            raise StoreError(f"{source}: cannot be read: {error.strerror}{whose}") from error


def restore(file: BinaryIO, source: Path, state_dir: Path, *, force: bool) -> About:
    """Restore the backup `file`, opened from `source`, as the store in `state_dir`, whose hub is stopped.

    Root becomes the permanent owner of `state_dir`. Raises StoreError, with nothing changed, where the backup cannot be
    used, a hub runs, or a store exists and `force` is not given.
    """
    become_owner(state_dir)
    store = state_dir / STORE
    if not state_dir.is_dir():
        raise StoreError(f"{state_dir}: is not a directory: create it for the hub's user, mode 0700")
    if store.is_symlink():
        raise StoreError(f"{store}: is a symbolic link: set state_dir to its target")
    if store.exists() and not force:
        raise StoreError(f"{store}: a store exists already: --force replaces it, and keeps it as {STORE}{BEFORE}")
    folder = state_dir / _FOLDER
    try:
        with nobody_has(store), _scratch(folder):
            _check_room(file, source, state_dir)
            about = read_backup(file, str(source), folder)
            _check_store(folder / STORE, about, source)
            _put(folder, state_dir)
    except OSError as error:
        raise StoreError(f"{state_dir}: cannot be written: {error.strerror or error}") from error
    return about


@contextmanager
def _scratch(folder: Path) -> Iterator[None]:
    """Provide an empty directory that is removed at the end."""
    if folder.is_symlink():
        raise StoreError(f"{folder}: is a symbolic link: remove it")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700)
    try:
        yield
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _check_room(file: BinaryIO, source: Path, state_dir: Path) -> None:
    size, free = os.fstat(file.fileno()).st_size, shutil.disk_usage(state_dir).free
    if free < size:
        raise StoreError(f"{state_dir}: has {free >> 20} MB free, and {source} needs {size >> 20} MB: free space there")


def _check_store(store: Path, about: About, source: Path) -> None:
    known = schema_number("hub")
    if about.schema > known:
        raise StoreError(f"{source}: its schema {about.schema} is newer than this version's ({known}): update gpuwaste")
    with closing(Database.open(store, "hub")) as db:
        counts = db.rows("counts")[0]
        db.execute("CHECKPOINT")
    wrong = [name for name in _COUNTED if name in about.rows and counts[name] != about.rows[name]]
    if wrong:
        raise StoreError(f"{source}: table {wrong[0]} is incomplete: use another backup")
    for path in store.parent.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())


def _put(folder: Path, state_dir: Path) -> None:
    """Move the files in; pages are named by their content, so those of both stores can be in one folder."""
    store = state_dir / STORE
    pages = pages_folder(store)
    for path in sorted((folder / "pages").glob("*/*.z")):
        target = pages / path.parent.name
        for made in (pages, target):
            made.mkdir(mode=0o700, exist_ok=True)
        path.replace(target / path.name)
        sync_directory(target)
    if (folder / _CORRECTIONS).exists():
        (folder / _CORRECTIONS).replace(state_dir / _CORRECTIONS)
    put_store(folder / STORE, store, BEFORE)


def _keep_old(store: Path, suffix: str) -> None:
    """Keep the store that is replaced under a second name, and move its log, which does not belong to the new one."""
    old, log = store.with_name(store.name + suffix), store.with_name(store.name + ".wal")
    if store.exists():
        old.unlink(missing_ok=True)
        old.hardlink_to(store)
    if log.exists():
        log.replace(old.with_name(old.name + ".wal"))
    sync_directory(store.parent)


def put_store(new: Path, store: Path, suffix: str) -> None:
    """Put a store in place; the previous one is kept with `suffix`, files derived from it are removed."""
    shutil.rmtree(store.parent / SAVED_HISTORY, ignore_errors=True)
    _keep_old(store, suffix)
    new.replace(store)
    forget_moved(store)
    sync_directory(store.parent)
