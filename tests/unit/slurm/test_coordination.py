"""In which clusters a coordinator counts: slurmdbd keeps coordinators by account, associations by cluster."""

from gpuwaste.slurm.site.associations import AccountPlace, coordinated

CAROL = frozenset({"carol"})


def place(cluster: str, account: str, parent: str = "root", user: str = "") -> AccountPlace:
    return AccountPlace(cluster, account, parent, user)


def clusters(coordinators: dict[str, frozenset[str]], *places: AccountPlace) -> dict[str, list[str]]:
    """Return the clusters in which carol coordinates each account."""
    found: dict[str, list[str]] = {}
    for (cluster, account), users in sorted(coordinated(coordinators, places).items()):
        assert users == CAROL
        found.setdefault(account, []).append(cluster)
    return found


def test_an_account_counts_in_the_clusters_that_have_it() -> None:
    """Of the clusters of slurmdbd, those in which the account has an association; in no other cluster of the hub."""
    places = [place("a", "proj"), place("b", "proj"), place("c", "proj2")]
    assert clusters({"proj": CAROL}, *places) == {"proj": ["a", "b"]}
    assert clusters({"proj": CAROL}) == {}


def test_who_is_a_user_of_the_account_in_one_cluster_coordinates_it_there() -> None:
    """Carol is in proj of a, and only dave in that of b: she reads proj of a."""
    places = [place("a", "proj"), place("b", "proj"), place("a", "proj", user="carol"), place("b", "proj", user="dave")]
    assert clusters({"proj": CAROL}, *places) == {"proj": ["a"]}


def test_who_coordinates_the_account_above_has_the_accounts_below_where_it_is_above() -> None:
    """Dept is above proj in a alone: sacctmgr prints carol for both, and proj of b lies below another department."""
    places = [place("a", "dept"), place("a", "proj", "dept"), place("b", "dept"), place("b", "proj", "other")]
    assert clusters({"dept": CAROL, "proj": CAROL}, *places) == {"dept": ["a", "b"], "proj": ["a"]}


def test_a_member_without_the_account_itself_gives_nothing() -> None:
    """A user's association in a cluster that does not list the account is no account there."""
    assert clusters({"proj": CAROL}, place("a", "proj", user="carol")) == {}
