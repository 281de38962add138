"""Short-lived child processes of the agent that load DuckDB: how one is started, and how it limits itself."""

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
"""Niceness of background work."""
WAITED_FOR: Final = 10
"""Niceness of work for a waiting request: at 19 it gets too little CPU on a fully loaded node."""


def start_child(module: str, arguments: str, stdout: int) -> "subprocess.Popen[bytes]":
    """Start main(ARGUMENTS) of a module of the agent. Raises StoreError.

    It runs in an interpreter with this process's path and nothing else of the site's.
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
    """Return how a child ended, as text."""
    return f"signal {-code}" if code < 0 else f"exit code {code}"


def hold_back(step_s: int, niceness: int) -> None:
    """Set a low priority and a memory limit, where the unit allows that, and end by SIGALRM after `step_s`."""
    os.umask(UMASK)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.alarm(step_s)
    with contextlib.suppress(OSError):
        os.nice(niceness)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_AS, (_ADDRESSES_B, _ADDRESSES_B))
