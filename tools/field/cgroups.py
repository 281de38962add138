"""The cgroup of a machine: where it is in this host's cgroup v2, and its removal with all below it."""

import contextlib
import hashlib
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


def of(folder: Path) -> Path:
    """Return the cgroup of the machine whose files are in a folder: machines of several checkouts have equal names."""
    mark = hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:8]
    return mounted() / f"{_PREFIX}{folder.name}-{mark}"


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
