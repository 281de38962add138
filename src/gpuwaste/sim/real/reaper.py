"""Ends a run's processes: a marker in their environment finds them, and a process does it if ours is killed.

`python -m gpuwaste.sim.real.reaper MARKER DIRECTORY SHARED` waits until its standard input closes. If nothing was
written there, it ends every process of the run, jobs included, and removes the directory and the clock's origin.
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
_SHM: Final = Path("/dev/shm")  # noqa: S108 where POSIX shared memory is; names are the wrapper's own


def marked(marker: str, directory: Path) -> list[int]:
    """Return the pids of live processes that carry the marker, and of each slurmstepd that works in `directory`.

    The title of a slurmstepd overwrites its environment, in Slurm 24.11 and later.
    """
    needle = f"{MARKER}={marker}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                if needle in (entry / "environ").read_bytes().split(b"\0") or _steps_in(entry, directory):
                    found.append(int(entry.name))
    return found


def _steps_in(process: Path, directory: Path) -> bool:
    named = (process / "comm").read_bytes() == b"slurmstepd\n"
    return named and (process / "cwd").readlink().is_relative_to(directory.resolve())


def sweep(marker: str, directory: Path) -> list[int]:
    """End every process that `marked` finds; returns those that are left after 15 s.

    A process whose clock's shared origin was gone made one of its own: that is removed too.
    """
    deadline, seen = time.monotonic() + _PATIENCE_S, set[int]()
    while (left := marked(marker, directory)) and time.monotonic() < deadline:
        seen.update(left)
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(_PAUSE_S)
    for pid in seen:
        remove_origin(f"/faketime_sem_{pid} /faketime_shm_{pid}")
    return left


def remove_origin(shared: str) -> None:
    """Remove what a killed wrapper leaves of a clock: `shared` is its FAKETIME_SHARED."""
    for word in shared.split():
        name = os.path.basename(word)  # noqa: PTH119 a name of shared memory, no path
        if name.startswith("faketime_"):
            for left in (name, f"sem.{name}"):
                with contextlib.suppress(PermissionError):
                    (_SHM / left).unlink(missing_ok=True)


def main(marker: str, directory: str, shared: str) -> int:
    """Wait for the end of the process that started this one, then clean up unless it did."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    if sys.stdin.buffer.read():
        return 0
    sweep(marker, Path(directory))
    remove_origin(shared)
    shutil.rmtree(directory, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4]))
