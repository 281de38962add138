"""Free space on the disks that hold the daemons' state."""

import shutil
from collections.abc import Iterator
from typing import Final

from gpuwaste.cli.check import Check, Role, Status, Surroundings, is_there

PLACE: Final = 70
NAME: Final = "disk"
ROLES: Final = frozenset({Role.AGENT, Role.HUB, Role.ADVISOR})
_WARN_B: Final = 2 * 1024**3
_FAIL_B: Final = 256 * 1024**2
_WARN_SHARE: Final = 0.05


def check(around: Surroundings) -> Iterator[Check]:
    """Check each state directory's file system; a small one counts as well as a full one."""
    for role, path in around.state_dirs.items():
        place = next((parent for parent in (path, *path.parents) if is_there(parent)), path)
        try:
            use = shutil.disk_usage(place)
        except OSError as error:
            yield Check(NAME, Status.FAIL, f"{path}: {error.strerror}", f"create it, or set [{role}] state_dir")
            continue
        figures = {f"disk_{role}_free_b": float(use.free)}
        found = f"{path}: {use.free / 1024**3:.1f} GiB free of {use.total / 1024**3:.1f}"
        mend = (
            "free space: a full disk stops the daemon's writes"
            if role is not Role.AGENT
            else "free space, or reduce retention"
        )
        low = use.free < _WARN_B and use.free < _WARN_SHARE * use.total
        status = Status.FAIL if use.free < _FAIL_B else Status.WARN if low else Status.OK
        yield Check(NAME, status, found, mend if status is not Status.OK else "", figures)
