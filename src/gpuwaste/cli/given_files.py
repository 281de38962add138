"""Files of data that a command is given: directories of TOML, or the files themselves."""

from collections.abc import Sequence
from pathlib import Path

from gpuwaste.core.errors import UsageError
from gpuwaste.core.typed_toml import toml_files


def given_files(paths: Sequence[Path], what: str) -> list[Path]:
    """Return each directory's TOML files by name, and the other paths as they are. Raises UsageError."""
    return [file for path in paths for file in _files(path, what)]


def checked_files(paths: Sequence[Path], usual: Path, standard: str, what: str) -> list[Path]:
    """Return the files to check: those given, else those of the configured directory. Raises UsageError.

    A missing directory is an error, unless it is the default: the daemons do not need that one.
    """
    if not paths and str(usual) == standard and not usual.exists():
        return []
    return given_files(paths or [usual], what)


def _files(path: Path, what: str) -> list[Path]:
    if path.is_dir():
        try:
            return toml_files(path)
        except OSError as error:
            raise UsageError(f"{path}: cannot be read: {error.strerror}") from error
    if not path.exists():
        raise UsageError(f"{path}: no such file or directory: give the directory of the {what}")
    return [path]
