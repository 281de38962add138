"""Which record of slurmctld an action means, and by which word Slurm's commands name it."""

from dataclasses import replace

import pytest

from gpuwaste.act.actions.action_kind import ActionRequest, actions
from gpuwaste.act.actions.action_target import key_of, target_of
from gpuwaste.slurm.clients.slurmctld_jobs import RunningJob
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.testing.fake_slurm import FakeSlurm

JOB = RunningJob(
    job_id=8, printed_id="8_2", name="x", user="alice", uid=1001, account="proj1", partition="cpu", qos="",
    state="RUNNING", submit=90, start=100, end=None, restarts=0,
    node_list="cpu1", n_nodes=1, array_job_id=8, array_task_id=2,
)  # fmt: skip


@pytest.mark.parametrize(
    ("printed", "target"),
    [("8", "8"), ("8_2", "8_2"), ("8_[0-9%2]", "8_[0-9]"), ("8_[1,3-5]", "8_[1,3-5]"), ("8_[0-9:2]", "8_[0-9:2]")],
)
def test_the_word_for_a_job(printed: str, target: str) -> None:
    """A task by its printed id, never by the number that is also its array's."""
    assert target_of(replace(JOB, printed_id=printed)) == (target, "")


@pytest.mark.parametrize("printed", ["8_[0-9,...]", "8_[" + "1," * 5000 + "2]", "", "8 9", "-8", "8;x"])
def test_what_cannot_be_named(printed: str) -> None:
    """A list of tasks that Slurm cuts off, or anything odd, is named by nothing."""
    assert "cannot be named" in target_of(replace(JOB, printed_id=printed))[1]


def test_a_component_is_not_named() -> None:
    """Slurm acts on all components of a heterogeneous job."""
    assert target_of(replace(JOB, het_job_id=8, het_offset=1))[1].startswith("a component")


def test_keys() -> None:
    """By the start; by the submission while it waits, and where it was cancelled while it waited."""
    assert key_of(JOB, "gw") == RunKey("gw", 8, 100)
    waiting = replace(JOB, state="PENDING", start=None, node_list="")
    assert key_of(waiting, "gw") == RunKey("gw", 8, 90)
    assert key_of(replace(waiting, state="CANCELLED", start=95), "gw") == RunKey("gw", 8, 90)
    assert key_of(replace(waiting, submit=None), "gw") is None


def test_two_records_of_one_key_are_none() -> None:
    """Where Slurm shows the run twice nothing is done."""
    run = RunKey("gw", 8, 100)
    execution = actions()["cancel"].execution
    assert execution
    request = ActionRequest(str(run), run, "alice", {})
    assert execution.look(request, FakeSlurm(running=[JOB]), {}).standing == "todo"  # type: ignore[arg-type]
    assert execution.look(request, FakeSlurm(running=[JOB, JOB]), {}).standing == "moot"  # type: ignore[arg-type]
