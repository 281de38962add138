"""Files that are whole or not there, files that nobody else may read, and who could change what a path leads to."""

import errno
import os
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from gpuwaste.core.errors import ConfigError
from gpuwaste.core.groups import group_name, user_name

UMASK: Final = 0o027  # of every daemon: what it writes is for its user and group, unless a mode is given
TEMPORARY: Final = ".gpuwaste-"  # prefix of what a killed writer may leave behind
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


def closed_directory(path: Path, key: str, mode: int = 0o750) -> None:
    """Make a directory that is missing, and refuse one in which others could put or replace what we trust.

    It and each directory above it must belong to root or to us, and nobody else, no other group either, may write
    there; a sticky one such as /tmp will do above it. `key` names it in the error. Raises ConfigError.
    """
    try:
        if not path.is_dir():
            path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
            path.mkdir(mode=mode)
            path.chmod(mode)  # whatever the umask
        if words := open_to_others(path, os.geteuid(), os.getegid()):
            raise ConfigError(f"{key} {path}: others could change files that gpuwaste trusts: {words}")
    except OSError as error:
        raise ConfigError(f"{key} {path}: cannot be used: {error.strerror}") from error


def open_to_others(path: Path, uid: int, gid: int) -> str:
    """Return which part of a path others than root, `uid` and the group `gid` could change and what closes it.

    "" is none. A link counts with its own directories and those of its target. Raises OSError.
    """
    for step in path_steps(path):
        if step.missing:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        if words := _open_to_others(step, uid, gid):
            return words
    return ""


def _open_to_others(step: PathStep, uid: int, gid: int) -> str:
    place, mode = step.place, step.found.st_mode
    if step.found.st_uid not in {0, uid}:
        return f"{place} belongs to uid {step.found.st_uid}: chown {_name(uid)} {place}"
    if step.last or not mode & stat.S_ISVTX:
        if mode & stat.S_IWOTH:
            return f"{place} can be written to by everybody: chmod o-w {place}"
        if step.group_writes(0, gid):
            group = group_name(step.found.st_gid) or str(step.found.st_gid)
            return f"{place} can be written to by group {group}: chmod g-w {place}"
    if step.entry_owner not in {None, 0, uid}:
        return f"an entry of {place} on the way to it belongs to uid {step.entry_owner}, who can replace it"
    return ""


def _name(uid: int) -> str:
    return user_name(uid) or str(uid)


def write_whole(path: Path, *parts: bytes | memoryview, mode: int = 0o644) -> None:
    """Write a file by another name in the same directory, on disk, then rename it. Raises OSError."""
    number, name = tempfile.mkstemp(prefix=TEMPORARY, dir=path.parent)
    try:
        with os.fdopen(number, "wb") as stream:
            stream.writelines(parts)
            stream.flush()
            os.fchmod(number, mode)
            os.fsync(number)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Put a directory's entries on disk: a rename before this may be undone by a power cut."""
    number = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def open_plain(path: Path) -> BinaryIO:
    """Open a plain file for reading; a pipe is not waited for, and a device is not even opened. Raises OSError."""
    place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(place).st_mode):
            raise OSError(errno.EINVAL, "not a plain file", str(path))
        return Path(f"/proc/self/fd/{place}").open("rb")
    finally:
        os.close(place)


def open_lock(path: Path) -> int:
    """Open or make a file to be locked, never another's by a link, and wait for no pipe. Raises OSError."""
    number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o644)
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise OSError(errno.EINVAL, "not a plain file", str(path))
    return number


def read_closed(path: Path, max_bytes: int, what: str = "it", hint: str = "") -> str:
    """Return the first `max_bytes` of a file with tokens that others cannot read. Raises ConfigError."""
    try:
        with open_plain(path) as file:
            if os.fstat(file.fileno()).st_mode & stat.S_IRWXO:
                raise ConfigError(f"{path}: everybody can read or change {what}: chmod o= {path}")
            data = file.read(max_bytes)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}{hint}") from error
    try:
        return data.decode("ascii")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: contains characters that are not allowed in a token") from error
