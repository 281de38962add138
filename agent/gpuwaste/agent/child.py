"""Children of the agent that load DuckDB for a moment: how one is started, and how it holds itself back."""

import contextlib
import os
import resource
import signal
import subprocess
import sys
from typing import Final

from gpuwaste.core.errors import StoreError
from gpuwaste.core.files import UMASK

_ADDRESSES_B: Final = 2 << 30
LAST: Final = 19
"""Niceness of work that nobody waits for."""
WAITED_FOR: Final = 10
"""Niceness of work that somebody waits for: at 19 it gets too little of a node whose processors are all busy."""


def start_child(module: str, arguments: str, stdout: int) -> "subprocess.Popen[bytes]":
    """Start main(ARGUMENTS) of a module of the agent. Raises StoreError.

    It runs in an interpreter with our own path and nothing else of the site's.
    """
    program = (
        f"import sys; sys.path[:] = {sys.path!r}; from pathlib import Path; "
        f"from gpuwaste.agent.{module} import main; sys.exit(main({arguments}))"
    )
    try:
        return subprocess.Popen([sys.executable, "-IBS", "-c", program], stdin=subprocess.DEVNULL, stdout=stdout)
    except OSError as error:
        raise StoreError(f"{sys.executable}: cannot be started: {error.strerror}") from error


def exit_words(code: int) -> str:
    """Return how a child ended."""
    return f"signal {-code}" if code < 0 else f"exit code {code}"


def hold_back(step_s: int, niceness: int) -> None:
    """Step back behind the node's jobs, and end by SIGALRM after `step_s`; a unit may forbid it and has limits."""
    os.umask(UMASK)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.alarm(step_s)
    with contextlib.suppress(OSError):
        os.nice(niceness)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_AS, (_ADDRESSES_B, _ADDRESSES_B))
