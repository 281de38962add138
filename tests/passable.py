"""Directories of tests that other users have to get through."""

from pathlib import Path

_PASS = 0o011


def let_others_through(path: Path) -> None:
    """Let group and others pass through a directory and those above it; nobody can read or change more than before."""
    for directory in (path, *path.parents):
        mode = directory.stat().st_mode
        if mode & _PASS != _PASS:
            directory.chmod(mode & 0o7777 | _PASS)
