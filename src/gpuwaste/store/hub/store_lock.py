"""Whether a process has a store's file open: DuckDB locks it, as these functions do."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gpuwaste.core.errors import StoreError


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
    """Tell whether another process has the file open. Raises OSError."""
    with store.open("r+b") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
