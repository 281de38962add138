"""Users of this host: their names and their Unix groups."""

import grp
import os
import pwd


def user_name(uid: int) -> str:
    """Return the name of a uid on this host, empty where it has none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return ""


def group_name(gid: int) -> str:
    """Return the name of a gid on this host, empty where it has none."""
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return ""


def unix_groups(user: str) -> frozenset[str]:
    """Return the names of a user's groups on this host, empty for an unknown user."""
    try:
        gids = os.getgrouplist(user, pwd.getpwnam(user).pw_gid)
    except KeyError:
        return frozenset()
    return frozenset(filter(None, map(group_name, gids)))


def uid_named(name: str) -> int | None:
    """Return the uid of a user of this host, None where there is none."""
    try:
        return pwd.getpwnam(name).pw_uid
    except KeyError:
        return None
