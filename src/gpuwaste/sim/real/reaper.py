"""What ends a run's processes: a marker in their environment finds them, and a process that does it if ours is killed.

`python -m gpuwaste.sim.real.reaper MARKER DIRECTORY SHARED` waits until its standard input closes. If nothing was
written there, it ends every process with the marker, jobs included, and removes the directory and the clock's origin.
"""

import contextlib
import os
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Final

MARKER: Final = "GPUWASTE_ENGINE_RUN"
_PATIENCE_S: Final = 15.0
_PAUSE_S: Final = 0.05


def marked(marker: str) -> list[int]:
    """Return the pids of live processes that carry the marker."""
    needle = f"{MARKER}={marker}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                if needle in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
    return found


def sweep(marker: str) -> list[int]:
    """End every process that carries the marker; returns those that are left after 15 s."""
    deadline = time.monotonic() + _PATIENCE_S
    while (left := marked(marker)) and time.monotonic() < deadline:
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(_PAUSE_S)
    return left


def main(marker: str, directory: str, shared: str) -> int:
    """Wait for the end of the process that started this one, then clean up unless it did."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    if sys.stdin.buffer.read():
        return 0
    from gpuwaste.sim.real.clock import remove_origin  # noqa: PLC0415 only where it is needed: this process starts with each run

    sweep(marker)
    remove_origin(shared)
    shutil.rmtree(directory, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4]))
