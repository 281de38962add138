"""Starting a test's daemon on a port of its own, though somebody else may take the port before the daemon does."""

import errno
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol

from gpuwaste.testing.cluster_process import tail

_PORTS: Final = 3  # that others may take between our choice and the daemon's


class OnPort(Protocol):
    """A daemon whose `port` is 0 until it is started; it keeps the port when it is started again."""

    port: int
    process: subprocess.Popen[bytes] | None

    @property
    def log(self) -> Path:
        """What it says."""
        ...


def start_on_port(daemon: OnPort, start: Callable[[], None]) -> None:
    """Call `start`, which chooses a port where `port` is 0 and waits until the daemon answers or has ended.

    Where the daemon found a port taken that was chosen here, on another one.
    """
    chosen = not daemon.port
    start()
    for _ in range(_PORTS):
        if not (chosen and _taken(daemon)):
            return
        daemon.port = 0
        start()


def _taken(daemon: OnPort) -> bool:
    ended = daemon.process is not None and daemon.process.poll() is not None
    return ended and os.strerror(errno.EADDRINUSE) in tail(daemon.log)
