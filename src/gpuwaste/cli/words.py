"""Limits of the arguments of any command: text in UTF-8 of a bounded length; and a message of a bounded length.

The parser calls text_word for every argument that has no type of its own, so that a command gets no bytes that cannot
be sent, stored or printed. A script's own arguments (type=str) are accepted as sbatch accepts them.
"""

import argparse
import re
from typing import TYPE_CHECKING, Final

from gpuwaste.core.errors import MAX_WORDS, UsageError

if TYPE_CHECKING:
    from pathlib import Path

MAX_WORD: Final = 4096  # characters; PATH_MAX, and far above any name that Slurm keeps
_LONGEST_NAME: Final = 255  # NAME_MAX, bytes
_MAX_COUNT: Final = 1_000_000  # more is a typing error
_MAX_SIZE: Final = 10**9
_JOB_ID: Final = re.compile(r"\d{1,10}(?:[_+]\d{1,10})?")
_TAIL: Final = 500  # characters of a message that is cut: its subject is first, what to do is last


def text_word(value: str) -> str:
    """Return the argument. Raises ArgumentTypeError where it is no text that can be sent and printed."""
    if len(value) > MAX_WORD:
        raise argparse.ArgumentTypeError(f"{len(value)} characters: expected at most {MAX_WORD}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise argparse.ArgumentTypeError(f"{value[:40]!r} is not UTF-8: write it in UTF-8") from None
    if "\0" in value:
        raise argparse.ArgumentTypeError("a NUL character: expected text")
    return value


def path_word(value: str) -> "Path":
    """Return the argument as a path. Raises ArgumentTypeError where no file can have that name."""
    from pathlib import Path

    if not value:
        raise argparse.ArgumentTypeError("an empty text: expected a path")
    path = Path(text_word(value))
    if any(len(part.encode()) > _LONGEST_NAME for part in path.parts):
        raise argparse.ArgumentTypeError(f"a name of more than {_LONGEST_NAME} bytes in the path: no file has that")
    return path


def number_word(value: str, least: int, most: int) -> int:
    """Return the argument as a whole number. Raises ArgumentTypeError, with the same range whatever is wrong."""
    if not (value.isdecimal() and len(value) <= len(str(most)) and least <= int(value) <= most):
        raise argparse.ArgumentTypeError(f"{value[:20]!r}: expected a number from {least} to {most}")
    return int(value)


def count_word(value: str) -> int:
    """Return the argument as a number of 0 and more. Raises ArgumentTypeError."""
    return number_word(value, 0, _MAX_COUNT)


def size_word(value: str) -> int:
    """Return the argument as a number of 1 and more, as large as a machine or a log may be."""
    return number_word(value, 1, _MAX_SIZE)


def listed(value: str | None) -> tuple[str, ...]:
    """Return the names of a comma-separated argument, none where it was not given."""
    return tuple(name.strip() for name in (value or "").split(",") if name.strip())


def require_job(value: str) -> None:
    """Raise UsageError unless the argument is a job as Slurm prints it: 7, 3_1 or 4+1."""
    if not _JOB_ID.fullmatch(value):
        raise UsageError(f"job {value[:40]!r}: expected a job ID such as 7, 3_1 or 4+1")


def cut(message: str) -> str:
    """Return a line unchanged up to MAX_WORDS, which the longest path fits; a longer one loses its middle."""
    return message if len(message) <= MAX_WORDS else f"{message[: MAX_WORDS - _TAIL]} [...] {message[-_TAIL:]}"
