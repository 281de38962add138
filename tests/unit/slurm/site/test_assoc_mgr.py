"""`scontrol show assoc_mgr` as 22.05.8 prints it: limits, what is used of them, and texts that are none."""

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.plan.facts import LIMITS

from gpuwaste.slurm.site.associations import parse_assoc_mgr
from gpuwaste.slurm.site.cluster_model import LimitSet, UserShare


def test_limits_and_what_is_used() -> None:
    """N is no limit; memory is printed in MiB, times in minutes."""
    (root, account, user), (normal, high) = parse_assoc_mgr(LIMITS)
    assert (root.account, root.user, account.parent) == ("root", "", "root")
    assert (account.limits.grp_tres, account.used.tres) == ({"cpu": 40, "gres/gpu": 8}, {"cpu": 1, "gres/gpu": 6})
    assert (user.user, user.account, user.limits.max_wall_s, user.default) == ("alice", "proj1", 172800, True)
    assert (user.fair_share, account.fair_share) == (0.2, None)
    assert (normal.name, normal.limits.grp_tres, normal.limits.max_wall_s) == ("normal", {}, None)
    assert (high.limits.max_wall_s, high.limits.max_tres_per_job) == (3600, {"gres/gpu": 3})
    assert (high.limits.grp_tres["mem"], high.used.tres["mem"]) == (65536 << 20, 500 << 20)
    assert (account.limits.grp_submit_jobs, account.used.submit_jobs) == (None, 1)


def test_what_a_user_has_of_a_qos_is_by_uid() -> None:
    """The part per user is under its uid; what the account has is no limit of the QOS."""
    _, (_, high) = parse_assoc_mgr(LIMITS)
    limits = LimitSet(max_tres_per_user={"gres/gpu": 5}, max_submit_per_user=9)
    assert high.used.users == {1001: UserShare(limits, {"gres/gpu": 2}, 1)}
    assert high.limits.max_tres_per_user == {}


def test_no_record_is_none() -> None:
    """A cluster without accounting prints none."""
    assert parse_assoc_mgr("Current Association Manager state\n\nNo associations\n") == ((), ())


@given(st.text(alphabet=st.sampled_from("QOS=ClusterName \n(1)N,gres/gpu:Limits0./"), max_size=200))
def test_whatever_text_is_read_without_an_error(text: str) -> None:
    """Cut, mixed up, or of another program."""
    parse_assoc_mgr(text)
    parse_assoc_mgr(LIMITS.replace("(", text[:3]))
