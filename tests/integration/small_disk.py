"""A disk of a few megabytes, to fill."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def disk_of(disk: Path, size: str) -> Iterator[Path]:
    """Mount a disk of that size at a new folder; without the right to, the test is skipped, saying why."""
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=0750", "tmpfs", str(disk)]
    done = subprocess.run(mount, check=False, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"a small disk cannot be mounted: {done.stderr.strip() or 'needs root'}")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)
