"""The owner of a path: a root command becomes the user who could swap names on the path before it works there.

Root that works in another user's directory follows what that user puts there: links, pipes, directories moved away
between a check and its use. As that user it can do no more than they can. A process that is not root is not changed.
"""

import grp
import os
import pwd
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gpuwaste.core.errors import ConfigError
from gpuwaste.core.files import PathStep, path_steps


@dataclass(frozen=True, slots=True)
class Owner:
    """A user that is not root: uid, groups, and name, which is the number where the uid has none."""

    uid: int
    gid: int
    groups: tuple[int, ...]
    name: str


def owner_of(directory: Path, *, sticky: bool = False) -> Owner | None:
    """Return the user to become before working in `directory`, which may not exist yet; None for no change.

    That is the only user besides root who owns the directory or one above it, links included. Raises ConfigError
    where there are two, or where others than its owner can write to a directory of root; `sticky` allows a directory
    such as /tmp as the last one, for a caller that only makes new files and follows no name there.
    """
    if os.geteuid() != 0:
        return None
    try:
        uids = _owners(directory, sticky=sticky)
    except OSError as error:
        raise ConfigError(f"{directory}: cannot be used: {error.strerror}") from error
    if len(uids) > 1:
        names = " and ".join(sorted(_owner(uid).name for uid in uids))
        raise ConfigError(f"{directory}: is inside directories of {names}: root trusts neither: run as one of them")
    return _owner(uids.pop()) if uids else None


def become_owner(directory: Path) -> Owner | None:
    """Become the user of `owner_of` for the rest of this process; return that user. Raises ConfigError."""
    owner = owner_of(directory)
    if owner is not None:
        os.setgroups(owner.groups)
        os.setresgid(owner.gid, owner.gid, owner.gid)
        os.setresuid(owner.uid, owner.uid, owner.uid)
        if not os.access(__file__, os.R_OK):
            place = Path(__file__).parents[1]
            raise ConfigError(
                f"{place}: {owner.name}, the owner of {directory}, cannot read gpuwaste there: install it where every "
                "user can"
            )
    return owner


@contextmanager
def as_owner(directory: Path, *, sticky: bool = False) -> Iterator[Owner | None]:
    """Work as the user of `owner_of` within the block, for a command that needs root's rights outside it.

    Raises ConfigError. A command that no longer needs root's rights calls `become_owner`, which cannot be undone.
    """
    owner = owner_of(directory, sticky=sticky)
    if owner is None:
        yield None
        return
    groups, gid = os.getgroups(), os.getegid()
    os.setgroups(owner.groups)
    os.setegid(owner.gid)
    os.seteuid(owner.uid)
    try:
        yield owner
    finally:
        os.seteuid(0)
        os.setegid(gid)
        os.setgroups(groups)


def _owners(directory: Path, *, sticky: bool) -> set[int]:
    """Return the users besides root who own a directory or an entry of its path. Raises OSError, ConfigError."""
    found = set[int]()
    for step in path_steps(directory):
        found |= _closed(step, sticky=sticky if step.last else not step.missing)
        if step.entry_owner:
            found.add(step.entry_owner)
    return found


def _closed(step: PathStep, *, sticky: bool) -> set[int]:
    """Return the owner of a directory, unless it is root. Raises ConfigError where others may write to root's."""
    there = step.found
    if there.st_uid:
        return {there.st_uid}
    if (step.group_writes(0) or there.st_mode & stat.S_IWOTH) and not (sticky and there.st_mode & stat.S_ISVTX):
        raise ConfigError(
            f"{step.place}: belongs to root, and others may write to it: chmod go-w {step.place}, or chown it to the"
            " service's user"
        )
    return set()


def _owner(uid: int) -> Owner:
    try:
        known = pwd.getpwuid(uid)
    except KeyError:
        return Owner(uid, _gid_of(uid), (), str(uid))
    return Owner(uid, known.pw_gid, tuple(os.getgrouplist(known.pw_name, known.pw_gid)), known.pw_name)


def _gid_of(uid: int) -> int:
    """Return a group for a uid without a name: of the same number where no such group exists, never root's."""
    try:
        grp.getgrgid(uid)
    except KeyError:
        return uid
    return 65534
