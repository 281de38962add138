"""Actions that a program of the site does: what each refuses before the program is run."""

from dataclasses import replace

import pytest

from gpuwaste.act.actions.action_kind import ActionRequest, SiteProgram, actions
from gpuwaste.slurm.clients.slurmctld_jobs import RunningJob
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.slurm.site.cluster_model import Node
from gpuwaste.testing.fake_slurm import FakeSlurm

JOB = RunningJob(
    job_id=8, printed_id="8", name="x", user="alice", uid=1001, account="proj1", partition="gpu", qos="",
    state="PENDING", submit=100, start=None, end=None, restarts=0, node_list="", n_nodes=1, time_limit_s=86400,
)  # fmt: skip
RUN = RunKey("gw", 8, 100)


class LookedSlurm(FakeSlurm):
    """A cluster that is looked at and does nothing."""

    def text(self, *argv: str) -> str:
        """Run no command."""
        raise AssertionError(argv)


def seen(kind: str, slurm: LookedSlurm, subject: str = str(RUN), **options: str) -> tuple[str, str, dict[str, str]]:
    """Look, as the actor does, at a run of alice's, a node or a model."""
    execution = actions()[kind].execution
    assert execution is not None
    run = RUN if subject == str(RUN) else None
    found = execution.look(ActionRequest(subject, run, "alice" if run else "", options), slurm, {})
    return found.standing, found.reason, dict(found.plan)


def test_each_program_gets_only_what_its_plan_names() -> None:
    """The places of a program are names of the plan; each is known, and none can be an option of the program."""
    for kind in actions().values():
        if kind.execution and isinstance(kind.execution.act, SiteProgram):
            assert not kind.execution.visible  # a program that was begun is never begun again
            assert kind.execution.act.key == f"{kind.name}_program"


@pytest.mark.parametrize(
    ("state", "standing"),
    [("IDLE+DRAIN", "todo"), ("IDLE+DRAIN+DYNAMIC_NORM", "todo"), ("IDLE", "moot"), ("MIXED+DRAIN", "moot"),
     ("DOWN+DRAIN", "moot")],
)  # fmt: skip
def test_a_health_check_is_for_a_drained_idle_node(state: str, standing: str) -> None:
    """A node in service, with jobs or down is left alone: the check may load its GPUs."""
    slurm = LookedSlurm(node_list=[Node("gpu1", state=state)])
    assert seen("health_check", slurm, "node/gpu1")[0] == standing
    assert seen("health_check", slurm, "node/gpu[1-2]")[0] == "moot"


def test_a_cascade_is_cut_into_two_to_six_jobs() -> None:
    """A limit of a day in parts of eight hours is three jobs; what is no waiting batch job of its own stays."""
    slurm = LookedSlurm(running=[JOB])
    plan = {"job": "8", "state": "PENDING", "user": "alice", "part": "08:00:00", "jobs": "3"}
    assert seen("resubmit", slurm, part="8:00:00") == ("todo", "", plan)
    for part, words in (("1:00:00", "is 24 jobs"), ("1-00:00:00", "is 1 jobs")):
        assert words in seen("resubmit", slurm, part=part)[1]
    for other, words in (
        (replace(JOB, batch=False), "not a batch job"),
        (replace(JOB, array_job_id=8), "of an array"),
        (replace(JOB, time_limit_s=None), "no time limit"),
        (replace(JOB, user="bob"), "is of user"),
        (replace(JOB, start=100, node_list="gpu1", state="RUNNING"), "is RUNNING"),
        (replace(JOB, submit=200), "is another run now"),
    ):
        standing, reason, _ = seen("resubmit", LookedSlurm(running=[other]), part="8:00:00")
        assert (standing, words in reason) == ("moot", True), reason


def test_a_user_whose_name_is_an_option_is_not_passed_on() -> None:
    """A directory that allows such names makes no option of a program out of them."""
    job = replace(JOB, state="RUNNING", start=100, node_list="gpu1", user="-rf")
    execution = actions()["profile"].execution
    assert execution is not None
    found = execution.look(ActionRequest(str(RUN), RUN, "-rf", {}), LookedSlurm(running=[job]), {})
    assert (found.standing, "cannot be passed" in found.reason) == ("moot", True)
    good = LookedSlurm(running=[replace(job, user="alice")])
    assert seen("profile", good)[2] == {"job": "8", "state": "RUNNING", "user": "alice", "nodes": "gpu1"}


@pytest.mark.parametrize("name", ["--waits", "a b", "", "x" * 65, "../etc", "a\nb"])
def test_a_models_name_is_no_option(name: str) -> None:
    """Neither the model of the rule nor the one to promote can be anything else than a name."""
    assert seen("rollback", LookedSlurm(), f"model/{name}")[0] == "moot"
    assert "option to" in actions()["promote"].problem({"to": name})
    assert seen("promote", LookedSlurm(), "model/a", to="b") == ("todo", "", {"model": "a", "to": "b"})
