"""Standard streams that may take nothing more: a full disk, a pipe that nobody reads."""

import os
import sys
from typing import TextIO


def tell(text: str) -> None:
    """Print to stderr, where that can be written to; the exit code says the same."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        drop(sys.stderr)


def drop(stream: TextIO) -> None:
    """Let go nowhere what a stream still holds, and Python writes at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
