"""Files that are complete or missing, files that only their owner may read, and who could change a path's target."""

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

UMASK: Final = 0o027  # of every daemon: its files are for its user and group, unless a mode is given
TEMPORARY: Final = ".gpuwaste-"  # prefix of files that a killed writer may leave behind
_MAX_LINKS: Final = 40  # as the kernel's limit


@dataclass(frozen=True, slots=True)
class PathStep:
    """A directory of the path, and the entry in it that is followed; the last step has none, and may be a file.

    `missing` is true where there is no such entry: the path ends here.
    """

    place: Path
    found: os.stat_result
    entry: os.stat_result | None = None
    missing: bool = False

    @property
    def last(self) -> bool:
        """Whether this is the path's target."""
        return self.entry is None and not self.missing

    @property
    def entry_owner(self) -> int | None:
        """The owner of the entry, who may replace it too, in a sticky directory; else None."""
        sticky = self.found.st_mode & stat.S_ISVTX
        return self.entry.st_uid if sticky and self.entry is not None else None

    def group_writes(self, *trusted: int) -> bool:
        """Whether members of a group that is not among the trusted ones may write here."""
        return bool(self.found.st_mode & stat.S_IWGRP) and self.found.st_gid not in trusted


def path_steps(path: Path) -> Iterator[PathStep]:
    """Yield the steps of a path from the root on. Raises OSError, also for a loop of links."""
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
    """Make a missing directory, and reject one in which others could add or replace trusted files.

    It and each directory above it must belong to root or to this process' user, and no other user or group may write
    there; a sticky one such as /tmp is allowed above it. `key` names it in the error. Raises ConfigError.
    """
    try:
        if not path.is_dir():
            path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
            path.mkdir(mode=mode)
            path.chmod(mode)  # regardless of the umask
        if words := open_to_others(path, os.geteuid(), os.getegid()):
            raise ConfigError(f"{key} {path}: others could change files that gpuwaste trusts: {words}")
    except OSError as error:
        raise ConfigError(f"{key} {path}: cannot be used: {error.strerror}") from error


def open_to_others(path: Path, uid: int, gid: int) -> str:
    """Return which part of a path others than root, `uid` and the group `gid` could change, and the fix.

    "" means none. For a link, its own directories and those of its target are checked. Raises OSError.
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
    """Write a file under another name in the same directory, sync it to disk, then rename it. Raises OSError."""
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
    """Sync a directory's entries to disk: without this a power cut may undo a rename."""
    number = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def open_plain(path: Path) -> BinaryIO:
    """Open a plain file for reading, without waiting for a pipe or opening a device. Raises OSError."""
    place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(place).st_mode):
            raise OSError(errno.EINVAL, "not a plain file", str(path))
        return Path(f"/proc/self/fd/{place}").open("rb")
    finally:
        os.close(place)


def open_lock(path: Path) -> int:
    """Open or make a lock file, without following a link or waiting for a pipe. Raises OSError."""
    number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o644)
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise OSError(errno.EINVAL, "not a plain file", str(path))
    return number


def read_closed(path: Path, max_bytes: int, what: str = "it", hint: str = "") -> str:
    """Return the first `max_bytes` of a file of tokens, which others must not be able to read. Raises ConfigError."""
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
