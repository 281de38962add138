"""`scontrol show assoc_mgr` as 22.05.8 prints it: limits, what is used of them, and texts that are none."""

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.plan.facts import LIMITS

from gpuwaste.slurm.site.assoc_mgr import Share, parse_assoc_mgr


def test_limits_and_what_is_used() -> None:
    """N is no limit; memory is printed in MiB, times in minutes."""
    root, account, user, normal, high = parse_assoc_mgr(LIMITS)
    assert (root.account, root.user, account.parent) == ("root", "", "root")
    assert account.grp_tres == {"cpu": Share(40, 1), "gres/gpu": Share(8, 6)}
    assert account.grp_tres["gres/gpu"].left == 2
    assert (user.user, user.account, user.max_wall_s, user.default) == ("alice", "proj1", 172800, True)
    assert (user.fair_share, account.fair_share) == (0.2, None)
    assert (normal.qos, normal.grp_tres, normal.max_wall_s) == ("normal", {}, None)
    assert (high.max_wall_s, high.max_tres_per_job) == (3600, {"gres/gpu": 3})
    assert high.grp_tres["mem"] == Share(65536 << 20, 500 << 20)


def test_what_a_user_has_of_a_qos_is_by_uid() -> None:
    """The part per user is under its uid; what the account has is no limit of the QOS."""
    high = parse_assoc_mgr(LIMITS)[-1]
    assert high.user_tres == {1001: {"gres/gpu": Share(5, 2)}}
    assert high.user_submit_jobs == {1001: Share(9, 1)}


def test_no_record_is_none() -> None:
    """A cluster without accounting prints none."""
    assert parse_assoc_mgr("Current Association Manager state\n\nNo associations\n") == []


@given(st.text(alphabet=st.sampled_from("QOS=ClusterName \n(1)N,gres/gpu:Limits0./"), max_size=200))
def test_whatever_text_is_read_without_an_error(text: str) -> None:
    """Cut, mixed up, or of another program."""
    parse_assoc_mgr(text)
    parse_assoc_mgr(LIMITS.replace("(", text[:3]))
