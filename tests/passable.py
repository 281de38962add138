"""Directories of tests that other users have to get through."""

import getpass
import tempfile
from pathlib import Path

_PASS = 0o011
_OF_PYTEST = Path(tempfile.gettempdir(), f"pytest-of-{getpass.getuser()}")


def let_others_through(path: Path) -> None:
    """Let group and others pass through a directory and those above it; nobody can read or change more than before.

    Not through pytest's own, which another pytest that starts closes again: the mark `sockets` gives one elsewhere.
    """
    assert not path.is_relative_to(_OF_PYTEST), f"{path}: mark the test with `sockets`"
    for directory in (path, *path.parents):
        mode = directory.stat().st_mode
        if mode & _PASS != _PASS:
            directory.chmod(mode & 0o7777 | _PASS)
