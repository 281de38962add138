"""What the checks of GPU vendors' libraries share: which can be loaded, and who may open device files."""

import grp
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from gpuwaste.cli.check import Check, Status


def loadable(names: Sequence[str]) -> str | None:
    """Return the first of these libraries that can be loaded, as the agent does it."""
    # Here and not above: other hosts than compute nodes have no agent.
    from gpuwaste.agent.collectors._library import load

    return next((name for name in names if load((name,)) is not None), None)


def check_groups(name: str, paths: Sequence[Path], what: str, page: str) -> Iterator[Check]:
    """Name the groups that the agent has to be in to open device files."""
    groups = sorted({group for path in paths if (group := _group(path))})
    if groups:
        yield Check(
            name,
            Status.OK,
            f"{what} belong to group {', '.join(groups)}: the unit needs it in SupplementaryGroups (how-to {page})",
        )


def _group(path: Path) -> str:
    """Return the group without which a device file cannot be opened, "" where none is needed."""
    try:
        status = os.stat(path)  # noqa: PTH116 one call for mode and group
        return "" if status.st_mode & stat.S_IROTH and status.st_mode & stat.S_IWOTH else grp.getgrgid(status.st_gid)[0]
    except (OSError, KeyError):
        return ""
