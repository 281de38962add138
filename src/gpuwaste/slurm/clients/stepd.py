"""What runs on this node, from local facts: slurmstepd's sockets."""

import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gpuwaste.core.errors import SlurmError

BATCH_STEP: Final = 4294967291  # SLURM_BATCH_SCRIPT
EXTERN_STEP: Final = 4294967292  # SLURM_EXTERN_CONT
INTERACTIVE_STEP: Final = 4294967290  # SLURM_INTERACTIVE_STEP
_REST = re.compile(r"(\d{1,10})\.(\d{1,10})(?:\.\d{1,10})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class StepSocket:
    """One step that runs on this node: its socket's file name, and when that was made, microseconds UTC."""

    job_id: int
    step_id: int
    mtime_us: int
    name: str


def scan_steps(spool_dir: Path, node: str) -> frozenset[StepSocket]:
    """Return the steps whose sockets `NODE_JOB.STEP` lie in slurmd's spool directory.

    Other nodes' sockets and other files are left out. Raises SlurmError where the directory cannot be read.
    """
    found = set()
    try:
        with os.scandir(spool_dir) as entries:
            for entry in entries:
                step = _step_of(entry, node)
                if step is not None:
                    found.add(step)
    except OSError as error:
        raise SlurmError(f"{spool_dir}: slurmd's spool directory cannot be read: {error.strerror}") from error
    return frozenset(found)


def _step_of(entry: os.DirEntry[str], node: str) -> StepSocket | None:
    name = entry.name
    if not name.startswith(f"{node}_"):
        return None
    match = _REST.fullmatch(name, len(node) + 1)
    if match is None:
        return None
    try:
        status = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return None  # the step ended between the listing and this look
    if not stat.S_ISSOCK(status.st_mode):
        return None
    return StepSocket(int(match[1]), int(match[2]), status.st_mtime_ns // 1000, name)
