"""Senders without munge: a token stands for a node or for a user, and for nothing else."""

from pathlib import Path

import pytest

from gpuwaste.core.refusal import Refusal
from gpuwaste.core.scope import Scope
from gpuwaste.hub.authentication import Identity
from gpuwaste.hub.roles import Roles
from gpuwaste.jobs.cluster_facts import ClusterFacts
from gpuwaste.net.request_signing import Caller
from gpuwaste.net.tokens import TokenChecker
from gpuwaste.slurm.site.cluster_model import Node
from gpuwaste.testing.clocks import FakeClock
from gpuwaste.testing.fake_slurm import FakeSlurm

NODE, USER = "n" * 32, "u" * 32


def identity(tmp_path: Path, slurm: FakeSlurm) -> Identity:
    """Return the identity of a site with a token for gpu1 and one for the operator oper."""
    tokens = tmp_path / "tokens"
    tokens.write_text(f"gpu1 {NODE}\noper {USER}\n")
    tokens.chmod(0o600)
    clock = FakeClock()
    return Identity(
        {"token": TokenChecker(tokens)}, Roles(slurm, clock), ClusterFacts(slurm, clock), None, lambda _: ""
    )


def site() -> FakeSlurm:
    return FakeSlurm(node_list=[Node("gpu1", address="10.0.0.1")], levels={"oper": "Operator"})


def test_a_nodes_token_is_its_agent_and_reads_no_job(tmp_path: Path) -> None:
    """The holder of gpu1's token sends gpu1's hours, not gpu2's, and has no user's rights."""
    who = identity(tmp_path, site())
    caller = who.caller(f"Bearer {NODE}", "POST", "/v1/hours")
    assert (who.is_agent(caller, "gpu1"), who.is_agent(caller, "gpu2")) == (True, False)
    assert who.scope(caller) == Scope("", agent=True)


def test_a_users_token_has_his_rights_and_is_no_agent(tmp_path: Path) -> None:
    """The operator's token reads everything, and sends no hours."""
    who = identity(tmp_path, site())
    caller = who.caller(f"Bearer {USER}", "GET", "/v1/top")
    assert (who.scope(caller), who.is_agent(caller, "gpu1")) == (Scope("oper", everything=True, operator=True), False)


def test_while_nodes_are_unknown_a_token_gives_no_rights(tmp_path: Path) -> None:
    """With Slurm never reached it cannot be told whether a token is a node's: the answer is 503, not a guess."""
    slurm = site()
    slurm.failure = "down"
    who = identity(tmp_path, slurm)
    with pytest.raises(Refusal, match="are unknown") as refusal:
        who.scope(who.caller(f"Bearer {NODE}", "GET", "/v1/top"))
    assert refusal.value.status == 503


def test_an_unknown_token_is_refused(tmp_path: Path) -> None:
    """A token that is not in the file proves nothing, and munge is not accepted where it is not set up."""
    who = identity(tmp_path, site())
    for authorization in ("Bearer " + "x" * 32, "Munge MUNGE:abc:", "Bearer "):
        with pytest.raises(Refusal) as refusal:
            who.caller(authorization, "GET", "/v1/top")
        assert refusal.value.status == 401


def test_a_uid_without_a_name_reads_nothing(tmp_path: Path) -> None:
    """A user that this host does not know is refused, instead of being everybody without a name."""
    who = identity(tmp_path, site())
    with pytest.raises(Refusal, match="uid 4711") as refusal:
        who.scope(Caller(4711, "10.0.0.1", "munge"))
    assert refusal.value.status == 403
