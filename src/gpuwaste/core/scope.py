"""Scope: what one caller may read of jobs; every read is kept to it."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple


class ClusterAccount(NamedTuple):
    """An account as accounting names it, and its cluster: others may have one of that name, of other people."""

    cluster: str
    account: str


@dataclass(frozen=True, slots=True)
class Scope:
    """What one caller may read. `agent` is the agents' own user: it reads the map and the history, and no job.

    `operator` has AdminLevel Operator or Administrator in sacctmgr: they may decide on actions. Staff may not.
    """

    user: str
    everything: bool = False
    accounts: frozenset[ClusterAccount] = frozenset()
    agent: bool = False
    operator: bool = False

    @property
    def bounded_user(self) -> str:
        """The user whose requests are bounded; "" for operators, staff and daemons, whose are not."""
        return "" if self.everything or self.agent else self.user

    def seen_by(self, user: str) -> "Scope":
        """Return the view of `user` as the owner of their jobs, as far as it is this caller's own: never more.

        Whoever reads everything may take any user's view, others their own; anything else is a view of nothing.
        """
        return Scope(user if self.everything or user == self.user else "")

    def accounts_named(self, name: str) -> frozenset[ClusterAccount]:
        """Return the caller's accounts of that name, of whatever clusters."""
        return frozenset(one for one in self.accounts if one.account == name)


def account_rows(accounts: Collection[ClusterAccount] | None) -> list[dict[str, str]] | None:
    """Return the value of parameter $accounts of a query; None is every account."""
    return None if accounts is None else [one._asdict() for one in sorted(accounts)]
