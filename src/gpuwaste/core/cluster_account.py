"""ClusterAccount: an account of one cluster. Clusters may have accounts of one name that belong to different people."""

from collections.abc import Collection
from typing import NamedTuple


class ClusterAccount(NamedTuple):
    """An account as accounting names it, and its cluster."""

    cluster: str
    account: str


def account_rows(accounts: Collection[ClusterAccount] | None) -> list[dict[str, str]] | None:
    """Return the value of parameter $accounts of a query; None is every account."""
    return None if accounts is None else [one._asdict() for one in sorted(accounts)]
