"""What an argument of any command may be: text in UTF-8 of a bounded length; and a message of a bounded length.

The parser asks these for every argument that has no type of its own or is a path, so that a command meets no bytes
that cannot be sent, stored or printed. A script's own arguments (type=str) are taken as sbatch takes them.
"""

import argparse
from pathlib import Path
from typing import Final

from gpuwaste.core.errors import MAX_WORDS

MAX_WORD: Final = 4096  # characters; PATH_MAX, and far above any name that Slurm keeps
_LONGEST_NAME: Final = 255  # NAME_MAX, bytes
_TAIL: Final = 500  # characters of a message that is cut: what it is about stands first, what to do last


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


def path_word(value: str) -> Path:
    """Return the argument as a path. Raises ArgumentTypeError where no file of ours can have that name."""
    if not value:
        raise argparse.ArgumentTypeError("an empty text: expected a path")
    path = Path(text_word(value))
    if any(len(part.encode()) > _LONGEST_NAME for part in path.parts):
        raise argparse.ArgumentTypeError(f"a name of more than {_LONGEST_NAME} bytes in the path: no file has that")
    return path


def cut(message: str) -> str:
    """Return a line as it is where it names the longest path there is; of a longer one the middle is left out."""
    return message if len(message) <= MAX_WORDS else f"{message[: MAX_WORDS - _TAIL]} [...] {message[-_TAIL:]}"
