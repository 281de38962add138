"""In which clusters somebody coordinates an account.

slurmdbd keeps coordinators by account, for all its clusters at once, and sacctmgr prints those of the accounts above
with them, whatever cluster they are above it in. The associations tell the clusters apart.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gpuwaste.core.scope import ClusterAccount


@dataclass(frozen=True, slots=True)
class AccountPlace:
    """An association: an account in a cluster below `parent`, or where `user` is not empty a user in it."""

    cluster: str
    account: str
    parent: str
    user: str


def coordinated(
    coordinators: Mapping[str, frozenset[str]], places: Iterable[AccountPlace]
) -> dict[ClusterAccount, frozenset[str]]:
    """Return the coordinators of each account of each cluster; `coordinators` are as sacctmgr prints them.

    Who coordinates an account above it in some cluster has it from there, and in these clusters alone. Anybody else
    has it in the clusters where they are a user of the account, or where they are none, wherever the account is.
    """
    parents: dict[str, dict[str, str]] = {}
    members: dict[tuple[str, str], set[str]] = {}
    for place in places:
        if place.user:
            members.setdefault((place.account, place.user), set()).add(place.cluster)
        else:
            parents.setdefault(place.account, {})[place.cluster] = place.parent
    found: dict[ClusterAccount, set[str]] = {}
    for account, users in coordinators.items():
        above = parents.get(account, {})
        for user in users:
            inherited = {cluster for cluster, parent in above.items() if user in coordinators.get(parent, ())}
            for cluster in (inherited or members.get((account, user)) or above.keys()) & above.keys():
                found.setdefault(ClusterAccount(cluster, account), set()).add(user)
    return {account: frozenset(users) for account, users in found.items()}
