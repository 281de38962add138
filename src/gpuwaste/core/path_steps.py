"""The steps of a path as the kernel takes them: every directory on the way, those of links and their targets too."""

import errno
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_MAX_LINKS: Final = 40  # as the kernel's own limit


@dataclass(frozen=True, slots=True)
class PathStep:
    """A directory on the way, and the entry in it that is followed; the last step has none, and may be a file.

    `missing` says that there is no such entry: the path ends here.
    """

    place: Path
    found: os.stat_result
    entry: os.stat_result | None = None
    missing: bool = False

    @property
    def last(self) -> bool:
        """Whether this is what the path leads to."""
        return self.entry is None and not self.missing

    @property
    def entry_owner(self) -> int | None:
        """Who may replace the entry beside who may write to the directory: its owner, in a sticky one."""
        sticky = self.found.st_mode & stat.S_ISVTX
        return self.entry.st_uid if sticky and self.entry is not None else None

    def group_writes(self, *trusted: int) -> bool:
        """Whether members of a group that is not among the trusted ones may write here."""
        return bool(self.found.st_mode & stat.S_IWGRP) and self.found.st_gid not in trusted


def path_steps(path: Path) -> Iterator[PathStep]:
    """Yield the steps of a path from the root on. Raises OSError, also for links that never end."""
    at, links = Path("/"), 0
    rest = list((Path.cwd() / path).parts[1:])[::-1]
    while rest:
        name = rest.pop()
        if name == "..":
            at = at.parent
            continue
        there = at.stat()
        try:
            entry = (at / name).lstat()
        except FileNotFoundError:
            yield PathStep(at, there, missing=True)
            return
        yield PathStep(at, there, entry)
        if stat.S_ISLNK(entry.st_mode):
            links += 1
            if links > _MAX_LINKS:
                raise OSError(errno.ELOOP, "too many symbolic links", str(path))
            target = (at / name).readlink()
            at = Path("/") if target.is_absolute() else at
            rest += [part for part in target.parts if part != "/"][::-1]
        else:
            at = at / name
    yield PathStep(at, at.stat())
