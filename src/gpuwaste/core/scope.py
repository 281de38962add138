"""Scope: which jobs one caller may read; every read is limited to it."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple


class ClusterAccount(NamedTuple):
    """An account as accounting names it, and its cluster: other clusters may have an account of the same name."""

    cluster: str
    account: str


@dataclass(frozen=True, slots=True)
class Scope:
    """What one caller may read. `agent` is the agents' own user: it reads the map and the history, but no job.

    `operator` has AdminLevel Operator or Administrator in sacctmgr: they may decide on actions. Staff may not.
    """

    user: str
    everything: bool = False
    accounts: frozenset[ClusterAccount] = frozenset()
    agent: bool = False
    operator: bool = False

    @property
    def bounded_user(self) -> str:
        """The user whose requests are bounded; "" for operators, staff and daemons, who are not."""
        return "" if self.everything or self.agent else self.user

    def seen_by(self, user: str) -> "Scope":
        """Return the view of `user` as the owner of their jobs, never more than this caller may read.

        A caller that reads everything may take any user's view, others their own; any other view is empty.
        """
        return Scope(user if self.everything or user == self.user else "")

    def accounts_named(self, name: str) -> frozenset[ClusterAccount]:
        """Return the caller's accounts of that name, on all clusters."""
        return frozenset(one for one in self.accounts if one.account == name)


def account_rows(accounts: Collection[ClusterAccount] | None) -> list[dict[str, str]] | None:
    """Return the value of parameter $accounts of a query; None is every account."""
    return None if accounts is None else [one._asdict() for one in sorted(accounts)]
