"""Folders for unpacked packages and Debian roots that end with their use; in memory where the host has enough of it.

ext4 looks at each inode that was freed in the last seconds before it gives one out: to unpack twenty thousand files
where as many were removed before costs more than to compress them.
"""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

ENOUGH_KIB: Final = 8 << 20
"""What must be free: all packages of one test take up to 2 GB, and several tests run at the same time."""
_SIZE: Final = "6G"


@contextmanager
def scratch(folder: Path = Path("/tmp")) -> Iterator[Path]:  # noqa: S108 roots have Unix sockets: a short path
    """Return a new directory that all users may enter; what is mounted in it goes with it."""
    _end_those_of_killed()
    with tempfile.TemporaryDirectory(prefix="gw", dir=folder, ignore_cleanup_errors=True) as name:
        path = Path(name)
        path.chmod(0o755)
        if os.geteuid() == 0 and _free_kib() >= ENOUGH_KIB:
            mounted("-t", "tmpfs", "-o", f"size={_SIZE},mode=755", f"{_source()}{os.getpid()}", name)
        try:
            yield path
        finally:
            _unmount(path)


def layered(lower: Path, path: Path) -> bool:
    """Make `path` a view of `lower` whose changes are its own, by overlayfs. Returns whether this host can."""
    layers = path.with_name(f".{path.name}")
    upper, work = layers / "upper", layers / "work"
    for new in (upper, work, path):
        new.mkdir(parents=True)
    if mounted("-t", "overlay", "-o", f"lowerdir={lower},upperdir={upper},workdir={work}", "overlay", str(path)):
        return True
    path.rmdir()
    shutil.rmtree(layers)
    return False


def mounted(*words: str) -> bool:
    """Call mount; return whether it worked."""
    return subprocess.run(["mount", *words], capture_output=True, check=False).returncode == 0


def _free_kib() -> int:
    found = re.search(r"^MemAvailable: +(\d+) kB", Path("/proc/meminfo").read_text(encoding="ascii"), re.MULTILINE)
    return int(found[1]) if found else 0


def _mounts() -> list[tuple[Path, str]]:
    """Return what is mounted in this process's view: where, and the source."""
    lines = [line.split() for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()]
    return [(Path(words[4]), words[words.index("-") + 2]) for words in lines]


def _source() -> str:
    """Return what stands before a process's number as the source of its mounts: numbers are of one namespace."""
    return f"gpuwaste-scratch-{Path('/proc/self/ns/pid').stat().st_ino}-"


def _end_those_of_killed() -> None:
    for point, source in _mounts():
        if source.startswith(_source()) and not Path("/proc", source.removeprefix(_source())).exists():
            _unmount(point)
            point.rmdir()


def _unmount(path: Path) -> None:
    """Unmount what is at and below a path, the last first. What a program still uses disappears when it ends."""
    for point in reversed([point for point, _ in _mounts() if point.is_relative_to(path)]):
        subprocess.run(["umount", "--lazy", str(point)], check=False)
