"""The syntax of slurm.conf and gres.conf: pairs of a key and a value, comments, continued lines, Include.

Rules are those of slurm.conf(5): keys are case-insensitive, `#` begins a comment unless a backslash is before it, a
line that ends with a backslash continues in the next one, values may be quoted, `Include FILE` puts another file in
place of the line (relative to slurm.conf, `%c` is the cluster's name).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from gpuwaste.core.errors import ConfigError
from gpuwaste.core.files import open_plain
from gpuwaste.core.text import decoded, words_of

MAX_FILE_B: Final = 16 * 1024**2
_MAX_FILES: Final = 64
_MAX_DEPTH: Final = 8
_PAIR = re.compile(r'([A-Za-z0-9_.]+)[ \t]*[-*+/]?=[ \t]*(?:"([^"]*)"|([^\s"]\S*))(?=\s|$)')
_INCLUDE = re.compile(r"include[ \t]+(\S+)\s*", re.IGNORECASE)
_COMMENT = re.compile(r"(?<!\\)#.*")
_BLANKS = re.compile(r"\s*")


@dataclass(frozen=True, slots=True)
class ConfLine:
    """One line: its file and number, and its pairs; keys are in lower case, the first one names the kind of line."""

    file: str
    number: int
    pairs: tuple[tuple[str, str], ...]

    @property
    def place(self) -> str:
        """Where the line is, for errors."""
        return f"{self.file} line {self.number}"

    @property
    def fields(self) -> dict[str, str]:
        """The pairs by key; of a key that occurs twice the last value counts, as with Slurm."""
        return dict(self.pairs)


@dataclass(frozen=True, slots=True)
class ConfText:
    """One line as written, without its comment and with the lines that continue it."""

    file: str
    number: int
    text: str

    @property
    def key(self) -> str:
        """The first key in lower case, "" where the line does not begin with a pair."""
        found = _PAIR.match(self.text.lstrip())
        return found[1].lower() if found else ""

    @property
    def value(self) -> str:
        """The value of the first key, without quotes."""
        found = _PAIR.match(self.text.lstrip())
        return (found[3] or found[2] or "") if found else ""


@dataclass(slots=True)
class _Reader:
    root: Path
    cluster: str
    files: int = 0
    left_b: int = MAX_FILE_B
    lines: list[ConfText] = field(default_factory=list)

    def read(self, path: Path, place: str, depth: int = 0) -> None:
        if depth > _MAX_DEPTH or self.files >= _MAX_FILES:
            raise ConfigError(f"{place}: more than {_MAX_DEPTH} nested Includes or {_MAX_FILES} files")
        data = read_bounded(path, place, self.left_b)
        self.files += 1
        self.left_b -= len(data)
        for number, text in _joined(decoded(data)):
            if found := _INCLUDE.fullmatch(text.strip()):
                here = f"{path} line {number}"
                self.read(self.root / found[1].replace("%c", self.cluster), here, depth + 1)
                continue
            line = ConfText(str(path), number, text)
            if line.key == "clustername":
                self.cluster = line.value.lower()  # as Slurm puts it into a file's name
            self.lines.append(line)


def read_text(path: Path, cluster: str = "") -> list[ConfText]:
    """Return the lines of a file and of all it includes, in order, unparsed.

    `cluster` is the value of %c before a line names it. Raises ConfigError, which names file and line, for a file that
    cannot be read, is larger than MAX_FILE_B, or includes itself.
    """
    reader = _Reader(path.parent, cluster)
    reader.read(path, "")
    return reader.lines


def read_conf(path: Path) -> list[ConfLine]:
    """Return the lines that hold pairs, of a file and of all it includes, in order.

    Raises ConfigError as read_text does, also for a line that does not hold pairs.
    """
    lines = (ConfLine(text.file, text.number, _pairs(text)) for text in read_text(path))
    return [line for line in lines if line.pairs]


def setting_of(path: Path, name: str) -> str:
    """Return the last value of a setting in a file and all it includes, "" where none sets it. Raises ConfigError."""
    values = [line.value for line in read_text(path) if line.key == name.lower()]
    return values[-1] if values else ""


def read_bounded(path: Path, place: str = "", most_b: int = MAX_FILE_B) -> bytes:
    """Return a plain file's bytes; errors name `place`. Raises ConfigError, also for more than `most_b` bytes."""
    told = f"{place}: {path}" if place else str(path)
    try:
        with open_plain(path) as file:
            data = file.read(most_b + 1)
    except (OSError, ValueError) as error:
        said = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(f"{told}: cannot be read: {said or error}") from error
    if len(data) > most_b:
        raise ConfigError(f"{told}: larger than {MAX_FILE_B >> 20} MiB: not the description of a machine")
    return data


def _joined(text: str) -> Iterator[tuple[int, str]]:
    """Yield each line with its number, comments removed; a continued one has the number of its first line."""
    begun: list[str] = []
    first = 0
    for number, raw in enumerate(text.split("\n"), 1):
        line = _COMMENT.sub("", raw).rstrip()
        first = first if begun else number
        slashes = len(line) - len(line.rstrip("\\"))
        if slashes % 2:
            begun.append(line[:-1])
            continue
        yield first, "".join([*begun, line])
        begun = []
    if begun:
        yield first, "".join(begun)


def _pairs(line: ConfText) -> tuple[tuple[str, str], ...]:
    pairs, text = [], line.text
    position = _BLANKS.match(text).end()  # type: ignore[union-attr] # it matches everywhere
    while position < len(text):
        found = _PAIR.match(text, position)
        if found is None:
            shown = words_of(text[position : position + 40])
            raise ConfigError(f"{line.file} line {line.number}: {shown!r}: expected Key=Value, as slurm.conf(5) has it")
        pairs.append((found[1].lower(), found[3] if found[2] is None else found[2]))
        position = _BLANKS.match(text, found.end()).end()  # type: ignore[union-attr] # it matches everywhere
    return tuple(pairs)
