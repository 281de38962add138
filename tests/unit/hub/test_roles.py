"""Who may read what, and for how long the answers of sacctmgr are believed."""

import os
import pwd

from gpuwaste.core.groups import unix_groups
from gpuwaste.core.scope import ClusterAccount, Scope
from gpuwaste.hub.roles import REFRESH_S, RETRY_S, Roles
from gpuwaste.testing.clocks import FakeClock
from gpuwaste.testing.fake_slurm import FakeSlurm


def test_each_role_has_its_scope() -> None:
    """Users, coordinators, staff, operators and administrators see what their role gives, and no more."""
    slurm = FakeSlurm(
        levels={"op": "Operator", "root": "Administrator", "alice": "None"},
        account_coordinators={"proj1": frozenset({"carol"}), "proj2": frozenset()},
    )
    groups = {"dora": frozenset({"hpc-staff", "users"}), "alice": frozenset({"users"})}
    roles = Roles(slurm, FakeClock(), ("hpc-staff",), lambda user: groups.get(user, frozenset()))
    assert roles.scope("alice") == Scope("alice")
    assert roles.scope("carol") == Scope("carol", accounts=frozenset({ClusterAccount("gw", "proj1")}))
    assert [roles.scope(u).everything for u in ("op", "root", "dora", "nobody")] == [True, True, True, False]


def test_roles_survive_slurm_but_are_not_made_up() -> None:
    """With Slurm down those who had rights keep them, nobody gains any, and it is asked again soon."""
    clock, slurm = FakeClock(), FakeSlurm(levels={"op": "Operator"})
    roles = Roles(slurm, clock)
    assert roles.scope("op").everything
    slurm.failure, slurm.levels = "down", {"op": "None", "mallory": "Administrator"}
    clock.advance(REFRESH_S)
    assert (roles.scope("op").everything, roles.scope("mallory").everything) == (True, False)
    slurm.failure = ""
    clock.advance(RETRY_S)
    assert (roles.scope("op").everything, roles.scope("mallory").everything) == (False, True)


def test_without_any_answer_everybody_sees_his_own_only() -> None:
    """A hub that has never reached Slurm gives nobody more than his own jobs."""
    roles = Roles(FakeSlurm(failure="down"), FakeClock())
    assert roles.scope("root") == Scope("root")


def test_half_an_answer_changes_nothing() -> None:
    """Where only one of the two tables can be read the old pair stays together."""

    class Half(FakeSlurm):
        def coordinators(self) -> dict[str, frozenset[str]]:
            self.failure = "down"
            self._fail()
            return {}

    roles = Roles(Half(levels={"op": "Operator"}), FakeClock())
    assert not roles.scope("op").everything


def test_slurm_is_asked_once_for_many_readers() -> None:
    """A hundred readers within five minutes cost two questions."""
    slurm = FakeSlurm()
    roles = Roles(slurm, FakeClock())
    for _ in range(100):
        roles.scope("alice")
    assert slurm.rpcs["sacctmgr"] == 2


def test_unix_groups_of_this_host() -> None:
    """A real user's groups are named; an unknown user has none."""
    me = pwd.getpwuid(os.geteuid())
    assert unix_groups(me.pw_name)
    assert unix_groups("no-such-user-here") == frozenset()
