"""A user's Unix groups on this host."""

import grp
import os
import pwd


def unix_groups(user: str) -> frozenset[str]:
    """Return the names of a user's groups on this host, empty for an unknown user."""
    try:
        gids = os.getgrouplist(user, pwd.getpwnam(user).pw_gid)
    except KeyError:
        return frozenset()
    names = set()
    for gid in gids:
        try:
            names.add(grp.getgrgid(gid).gr_name)
        except KeyError:
            continue
    return frozenset(names)
