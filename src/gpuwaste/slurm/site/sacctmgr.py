"""sacctmgr's tables: clusters, who administers, who coordinates which account, in which clusters accounts are."""

from gpuwaste.core.errors import ParseError
from gpuwaste.slurm.site.coordination import AccountPlace

CLUSTERS = ("show", "cluster", "format=cluster")
ADMIN_LEVELS = ("show", "user", "format=user,adminlevel")
COORDINATORS = ("show", "account", "withcoord", "format=account,coord")
PLACES = ("show", "assoc", "format=cluster,account,parentname,user")


def parse_clusters(text: str) -> tuple[str, ...]:
    """Return the names of the clusters. Raises ParseError."""
    return tuple(name for (name,) in _rows(text, 1, "clusters"))


def parse_admin_levels(text: str) -> dict[str, str]:
    """Return user -> level (None, Operator or Administrator, as printed). Raises ParseError."""
    return {user: level for user, level in _rows(text, 2, "users") if user}


def parse_coordinators(text: str) -> dict[str, frozenset[str]]:
    """Return account -> its coordinators; accounts without one are in it, empty. Raises ParseError."""
    found: dict[str, frozenset[str]] = {}
    for account, users in _rows(text, 2, "coordinators"):
        names = frozenset(user for user in users.split(",") if user)
        found[account] = found.get(account, frozenset()) | names
    return found


def parse_places(text: str) -> list[AccountPlace]:
    """Return the associations. Raises ParseError."""
    return [AccountPlace(*row) for row in _rows(text, 4, "associations")]


def _rows(text: str, width: int, what: str) -> list[list[str]]:
    rows = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        row = line.split("|")
        if len(row) != width:
            raise ParseError(
                f"sacctmgr's {what}, line {number}: {len(row)} fields where {width} were requested: {line[:80]!r}"
            )
        rows.append(row)
    return rows
