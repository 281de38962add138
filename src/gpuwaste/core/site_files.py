"""Data files that a site writes and daemons reload when they change: folders of TOML, and CSV."""

import csv
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final, Generic, TypeVar

from gpuwaste.core.errors import ConfigError, GpuwasteError, ParseError
from gpuwaste.core.typed_toml import toml_files

MAX_FILES: Final = 1000
"""Most files of a folder."""
_T = TypeVar("_T")
_State = tuple[tuple[str | int, ...], ...]


class WatchedFiles(Generic[_T]):
    """The content of a file, or of the `*.toml` of a folder; if it cannot be used, the last good content stays in use.

    One thread refreshes, any may read.
    """

    def __init__(
        self, path: Path | None, read: Callable[[], _T], content: _T, rejected: Callable[[str], object] | None = None
    ) -> None:
        """`content` is in use until `refresh` has read another; without a path it reads once.

        `read` raises GpuwasteError for what cannot be used; `rejected` is called with each such error once.
        """
        self.content = content
        self.error = ""
        """The reason why the current files are not in use; "" where they are."""
        self._path = path
        self._read = read
        self._rejected = rejected
        self._state: _State | None = None

    def refresh(self) -> None:
        """Read again if a file has changed, or could not be used the last time."""
        state = () if self._path is None else _state(self._path)
        if state == self._state and not self.error:
            return
        self._state = state
        try:
            self.content, self.error = self._read(), ""
        except GpuwasteError as error:
            before, self.error = self.error, str(error)
            if self._rejected is not None and self.error != before:
                self._rejected(self.error)

    def has(self, name: str) -> bool:
        """Return whether a file of that name existed at the last refresh; true where that is not known."""
        return self._state is None or any(found in {name, ""} for found, *_ in self._state)


def _state(path: Path) -> _State:
    """Return a state that changes with a file or a folder's files; "" instead of a name where they cannot be listed.

    ctime also changes where a file only becomes readable. A dangling link has only its name.
    """
    try:
        files = toml_files(path)
    except NotADirectoryError:
        files = [path]
    except OSError as error:
        return (("", error.errno or 0),)
    return tuple(map(_file_state, files)) if len(files) <= MAX_FILES else (("", len(files)),)


def _file_state(path: Path) -> tuple[str | int, ...]:
    try:
        found = path.stat()
    except OSError as error:
        return path.name, error.errno or 0
    return path.name, found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size


def folder_files(directory: Path, what: str, key: str, most: int = MAX_FILES) -> list[Path]:
    """Return a folder's `*.toml` sorted by name, none where it does not exist. Raises ConfigError.

    In errors `what` names the files, `key` the setting of the folder.
    """
    try:
        found = toml_files(directory)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise ConfigError(f"{directory}: {what} cannot be read: {error.strerror}: see {key}") from error
    if len(found) > most:
        raise ConfigError(f"{directory}: {len(found)} {what}, {most} at most: remove some")
    return found


def read_each(paths: Iterable[Path], read: Callable[[Path], _T]) -> tuple[list[_T], list[ConfigError]]:
    """Return the content of the good files, and the errors of the others."""
    found: list[_T] = []
    errors: list[ConfigError] = []
    for path in paths:
        try:
            found.append(read(path))
        except ConfigError as error:
            errors.append(error)
    return found, errors


def csv_text(data: bytes, where: str) -> str:
    """Return the text of a CSV file, without a byte order mark. Raises ParseError with the line that is not UTF-8."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ParseError(f"{where}: line {line} is not UTF-8: save the file as UTF-8") from error


def csv_rows(text: str, where: str, expected: str = "expected CSV") -> Iterator[tuple[int, list[str]]]:
    """Yield the rows that are not empty with their lines. Raises ParseError that ends with `expected`."""
    reader = csv.reader(text.splitlines(keepends=True), strict=True)
    try:
        for row in reader:
            if row:
                yield reader.line_num, row
    except csv.Error as error:
        raise ParseError(f"{where}: line {reader.line_num}: {error}: {expected}") from error
