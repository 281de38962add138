"""sacctmgr's tables become mappings."""

import pytest

from gpuwaste.core.errors import ParseError
from gpuwaste.slurm.site.associations import (
    AccountPlace,
    parse_admin_levels,
    parse_clusters,
    parse_coordinators,
    parse_places,
)


def test_reads_clusters() -> None:
    """The names, in sacctmgr's order."""
    assert parse_clusters("east\ngw\n") == ("east", "gw")


def test_reads_levels() -> None:
    """Each user with the level as printed."""
    assert parse_admin_levels("alice|None\nroot|Administrator\n") == {"alice": "None", "root": "Administrator"}


def test_reads_coordinators() -> None:
    """Each account with all its coordinators, none for most."""
    assert parse_coordinators("proj1|carol,bob\nroot|\n") == {"proj1": frozenset({"bob", "carol"}), "root": frozenset()}


def test_reads_associations() -> None:
    """An account with the account above it, and a user of it."""
    account, user = AccountPlace("gw", "proj1", "root", ""), AccountPlace("gw", "proj1", "", "bob")
    assert parse_places("gw|proj1|root|\ngw|proj1||bob\n") == [account, user]


@pytest.mark.parametrize("text", ["alice", "alice|None|x"])
def test_refuses_other_widths(text: str) -> None:
    """A row with other fields than were asked is a ParseError."""
    with pytest.raises(ParseError, match="line 1"):
        parse_admin_levels(text)
