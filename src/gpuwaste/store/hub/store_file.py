"""Checks whether a hub may use the store's file: not while its rows are elsewhere, or a process has it open."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from gpuwaste.core.errors import StoreError
from gpuwaste.core.files import sync_directory, write_whole
from gpuwaste.core.text import words_of

_SUFFIX: Final = ".moved"
_MOST: Final = 500  # characters of the note that are read
MOVED: Final = (
    'was moved to a lake: set [hub] store = "lake" (if the move was interrupted at its end, first run'
    " `gpuwaste hub move --to lake` again); `gpuwaste hub move --reopen` uses the file again as it was then"
)
UNFINISHED: Final = "a move into this file was interrupted at its end: run `gpuwaste hub move --to file` again"


def note_moved(store: Path, words: str) -> None:
    """Keep hubs from using the store from now on, with this text as the error. Raises OSError."""
    write_whole(_note(store), words.encode(), mode=0o640)


def forget_moved(store: Path) -> None:
    """Let a hub use the store. Raises OSError."""
    _note(store).unlink(missing_ok=True)
    sync_directory(store.parent)


def check_not_moved(store: Path) -> None:
    """Raise StoreError where a note keeps hubs from using the store."""
    try:
        with _note(store).open("rb") as file:
            words = words_of(file.read(_MOST))
    except FileNotFoundError:
        return
    except OSError as error:
        raise StoreError(f"{_note(store)}: cannot be read: {error.strerror}") from error
    raise StoreError(f"{store}: {words}")


def _note(store: Path) -> Path:
    return store.with_name(store.name + _SUFFIX)


@contextmanager
def nobody_has(store: Path) -> Iterator[None]:
    """Hold the lock that a hub would hold on its store, if there is one. Raises StoreError if another process does."""
    if not store.exists():
        yield
        return
    with store.open("r+b") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise StoreError(f"{store}: used by another process, probably a running hub: stop it first") from error
        yield


def in_use(store: Path) -> bool:
    """Return whether another process has the file open. Raises OSError."""
    with store.open("r+b") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
