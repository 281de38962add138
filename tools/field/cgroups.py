"""The cgroup of a machine: made in this host's cgroup v2, removed with all below it."""

import contextlib
import time
from pathlib import Path
from typing import Final

from gpuwaste.core.errors import GpuwasteError

_PREFIX: Final = "gpuwaste-field-"
_END_S: Final = 20.0


def mounted(mountinfo: Path = Path("/proc/self/mountinfo")) -> Path:
    """Return where cgroup v2 is mounted here, alone or beside v1. Raises GpuwasteError."""
    for line in mountinfo.read_text(encoding="utf-8").splitlines():
        before, _, after = line.partition(" - ")
        if after.startswith("cgroup2 "):
            return Path(before.split()[4])
    raise GpuwasteError("field: no cgroup v2 on this host: mount -t cgroup2 none /sys/fs/cgroup/unified")


def make(name: str) -> Path:
    """Make a machine's cgroup, and remove those of machines that were killed with all their processes."""
    top = mounted()
    for left in top.glob(f"{_PREFIX}*"):
        if left.name != f"{_PREFIX}{name}" and not _populated(left):
            _remove_below(left)
    own = top / f"{_PREFIX}{name}"
    own.mkdir(exist_ok=True)
    return own


def remove(own: Path) -> None:
    """Remove a cgroup with all below it, once its last process has ended. Raises GpuwasteError."""
    deadline = time.monotonic() + _END_S
    while own.exists():
        if not _populated(own):
            _remove_below(own)
        if own.exists() and time.monotonic() > deadline:
            raise GpuwasteError(f"field: {own} still has processes after {_END_S:g} s: {_processes(own)[:5]}")
        time.sleep(0.05)


def _populated(own: Path) -> bool:
    try:
        return "populated 1" in (own / "cgroup.events").read_text(encoding="ascii")
    except OSError:
        return False


def _processes(own: Path) -> list[str]:
    return [line for file in own.rglob("cgroup.procs") for line in file.read_text(encoding="ascii").split()]


def _remove_below(own: Path) -> None:
    below = sorted((path for path in own.rglob("*") if path.is_dir()), key=lambda path: -len(path.parts))
    for path in [*below, own]:
        with contextlib.suppress(OSError):
            path.rmdir()
