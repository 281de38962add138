"""ActionExecutor at its two edges, the hub's queue and Slurm: what changes between look and act."""

import contextlib
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace as entry_with

from gpuwaste.act.actions.action_types import ActionEntry, ActionLent, ActionTaken, Outcome
from gpuwaste.actor.action_executor import ActionExecutor, ActionResult
from gpuwaste.actor.action_journal import ActionJournal
from gpuwaste.actor.actor_settings import ActorSettings
from gpuwaste.core.clock import SystemClock
from gpuwaste.core.config import Config
from gpuwaste.core.site_config import CommonConfig
from gpuwaste.slurm.clients.slurmctld_jobs import RunningJob
from gpuwaste.testing.clocks import FakeClock
from gpuwaste.testing.fake_slurm import FakeSlurm

JOB = RunningJob(
    job_id=8, printed_id="8", name="x", user="alice", uid=1001, account="proj1", partition="cpu", qos="",
    state="RUNNING", submit=90, start=100, end=None, restarts=0, node_list="cpu1", n_nodes=1,
)  # fmt: skip
ENTRY = ActionEntry(
    id="a" * 64, rule="idle", rule_hash="b" * 64, kind="cancel", subject="gw/8@100", cluster="gw", job_id=8, start=100,
    user="alice", account="proj1", approve="none", decided=0, expires=2**40, status="intended", since=0,
)  # fmt: skip


@dataclass
class SlowQueue:
    """A hub that takes its time to note a step: meanwhile Slurm becomes another."""

    slurm: FakeSlurm
    after: list[RunningJob]
    reported: list[str] = field(default_factory=list)

    def claim(self, kinds: Sequence[str]) -> ActionLent:
        """Lend nothing."""
        raise AssertionError(kinds)

    def report(
        self, action: str, status: Outcome, *, reason: str = "", answer: str = "", plan: Mapping[str, str] | None = None
    ) -> ActionTaken:
        """Note the step, and let the run become another."""
        del action, reason, answer, plan
        self.reported.append(status)
        self.slurm.running = self.after
        return ActionTaken(taken=True, status="sent", lease_s=60)


class AcceptingSlurm(FakeSlurm):
    """A slurmctld that takes a scancel; then the run goes through these states, the last one for ever."""

    def text(self, *argv: str) -> str:
        """Take the command."""
        assert argv[0] == "scancel"
        self.running = [replace(JOB, state="COMPLETING")]
        return ""

    def settle(self, *jobs: RunningJob) -> None:
        """Be done with the run's end."""
        self.running = list(jobs)


@pytest.mark.parametrize(
    ("settled", "status", "words"),
    [
        ([replace(JOB, state="CANCELLED", end=160)], "confirmed", "CANCELLED"),
        ([replace(JOB, state="PENDING", start=None, node_list="")], "moot", "is another run now"),
        (None, "confirmed", "Slurm accepted it; the run is COMPLETING"),
    ],
)
def test_a_run_that_is_completing_is_waited_for(
    settled: list[RunningJob] | None, status: str, words: str, tmp_path: Path
) -> None:
    """COMPLETING may be the end or a requeue: what follows says which; a node that hangs there keeps nobody waiting."""
    slurm = AcceptingSlurm(running=[JOB])

    def keep() -> None:
        if settled is not None:
            slurm.settle(*settled)

    journal = ActionJournal(tmp_path / "actions.sqlite", 0)
    settings = ActorSettings(kinds=("cancel",), stop_file=tmp_path / "stop", confirm_s=1.5)
    executor = ActionExecutor(
        SlowQueue(slurm, [JOB]),
        slurm,
        journal,
        settings,
        FakeClock(),
        stop=threading.Event(),
        keep=keep,
    )
    ending = executor.execute(ENTRY)
    journal.close()
    assert ending is not None
    assert (ending.status, words in ending.reason) == (status, True), ending


@pytest.mark.parametrize(
    ("after", "status", "words"),
    [
        ([replace(JOB, start=200)], "moot", "is another run now"),
        ([replace(JOB, state="PENDING", start=None, node_list="")], "moot", "is another run now"),
        ([replace(JOB, state="SUSPENDED")], "failed", "has changed meanwhile"),
        ([], "moot", "no longer has the job"),
    ],
)
def test_a_run_that_changes_after_the_look_is_left_alone(
    after: list[RunningJob], status: str, words: str, tmp_path: Path
) -> None:
    """It was requeued, started again, suspended or is gone while the hub noted the step: Slurm is asked for nothing."""
    slurm = FakeSlurm(running=[JOB])
    queue = SlowQueue(slurm, after)
    journal = ActionJournal(tmp_path / "actions.sqlite", 0)
    executor = ActionExecutor(
        queue, slurm, journal, ActorSettings(kinds=("cancel",), stop_file=tmp_path / "stop"), SystemClock(),  # type: ignore[arg-type]
        stop=threading.Event(), keep=lambda: None,
    )  # fmt: skip
    ending = executor.execute(ENTRY)
    journal.close()
    assert queue.reported == ["sent"]
    assert ending is not None
    assert (ending.status, words in ending.reason) == (status, True), ending


class RecordingSlurm(FakeSlurm):
    """A slurmctld that notes each command, and does nothing."""

    asked: list[tuple[str, ...]]

    def text(self, *argv: str) -> str:
        """Note the command."""
        self.asked.append(argv)
        return ""


def _executed(
    entry: ActionEntry, slurm: FakeSlurm, directory: Path, **settings: Any
) -> tuple[ActionResult | None, list[str]]:
    """Return how an action ends, and the steps that the hub was told."""
    queue = SlowQueue(slurm, list(slurm.running))
    own = ActorSettings(kinds=(entry.kind,), stop_file=directory / "stop", confirm_s=0.0, **settings)
    with contextlib.closing(ActionJournal(directory / "actions.sqlite", 0)) as journal:
        executor = ActionExecutor(
            queue, slurm, journal, own, SystemClock(), stop=threading.Event(), keep=lambda: None,  # type: ignore[arg-type]
        )  # fmt: skip
        return executor.execute(entry), queue.reported


def _recording(*jobs: RunningJob) -> RecordingSlurm:
    slurm = RecordingSlurm(running=list(jobs))
    slurm.asked = []
    return slurm


EXTENDED = entry_with(
    ENTRY, kind="extend_limit", status="sent", sends=1, options={"by": "60", "at_most": "2:00:00"},
)  # fmt: skip


def test_a_plan_of_the_hub_names_no_other_job_and_no_longer_limit(tmp_path: Path) -> None:
    """A hub that was taken over hands over a plan: the command is about the run that was found, within its bounds."""
    plan = {"job": "9", "state": "RUNNING", "limit_s": str(365 * 86400), "limit": "UNLIMITED"}
    slurm = _recording(replace(JOB, time_limit_s=3600))
    _executed(entry_with(EXTENDED, plan=plan), slurm, tmp_path)
    assert slurm.asked == [("scontrol", "update", "JobId=8", "TimeLimit=02:00:00")]


@pytest.mark.parametrize("limit_s", ["", "-1", "1e9", "9" * 40])
def test_a_plan_that_cannot_be_read_ends_its_action(limit_s: str, tmp_path: Path) -> None:
    """Else it would be lent for ever, and no other action had its turn."""
    slurm = _recording(replace(JOB, time_limit_s=3600))
    ending, _ = _executed(entry_with(EXTENDED, plan={"job": "8", "limit_s": limit_s}), slurm, tmp_path)
    assert ending is not None
    assert (ending.status, "stored plan" in ending.reason, slurm.asked) == ("failed", True, [])


def test_what_has_expired_is_not_sent_again(tmp_path: Path) -> None:
    """The actor's host was down for long after it had noted the step: what the rule saw then counts no more."""
    slurm = _recording(JOB)
    sent = entry_with(ENTRY, status="sent", sends=1, plan={"job": "8", "state": "RUNNING"}, expires=1)
    ending, reported = _executed(sent, slurm, tmp_path)
    assert ending is not None
    assert (ending.status, "expired" in ending.reason, reported, slurm.asked) == ("failed", True, [], [])


def test_what_slurm_cannot_show_ends_when_it_expires(tmp_path: Path) -> None:
    """An action that was sent is lent before all others: it may not keep them waiting for ever."""
    slurm = _recording(JOB)
    slurm.failure = "squeue: error: Invalid job id specified"
    sent = entry_with(ENTRY, status="sent", sends=1, plan={"job": "8", "state": "RUNNING"})
    assert _executed(sent, slurm, tmp_path) == (None, [])
    ending, _ = _executed(entry_with(sent, expires=1), slurm, tmp_path)
    assert ending is not None
    assert (ending.status, "unknown whether" in ending.reason) == ("failed", True)


def test_an_exempt_account_is_that_of_slurms_record(tmp_path: Path) -> None:
    """A hub that names another account, or a job that was moved since, makes no job of an exempt account a target."""
    slurm = _recording(replace(JOB, account="exam"))
    ending, reported = _executed(ENTRY, slurm, tmp_path, exempt_accounts=frozenset({"exam"}))
    assert ending is not None
    assert (ending.status, "exempt" in ending.reason, reported, slurm.asked) == ("moot", True, [], [])


@pytest.mark.parametrize(("slow_s", "sent"), [(20.0, True), (40.0, False)])
def test_a_command_that_may_outlast_the_lease_is_not_sent(slow_s: float, tmp_path: Path, *, sent: bool) -> None:
    """Where hub and disk leave less of the lease than a Slurm command may take, another actor could do the same."""
    clock = FakeClock()

    class SlowLook(AcceptingSlurm):
        def job(self, job_id: int) -> list[RunningJob]:
            clock.advance(slow_s / 2)
            return super().job(job_id)

    slurm = SlowLook(running=[JOB])

    def report(action: str, status: Outcome, **_: Any) -> ActionTaken:
        del action
        clock.advance(slow_s / 2)
        return ActionTaken(taken=True, status=status, lease_s=60)

    queue = SlowQueue(slurm, [JOB])
    queue.report = report  # type: ignore[method-assign]
    settings = ActorSettings(kinds=("cancel",), stop_file=tmp_path / "stop", confirm_s=0.0, command_s=25.0)
    with contextlib.closing(ActionJournal(tmp_path / "actions.sqlite", 0)) as journal:
        executor = ActionExecutor(queue, slurm, journal, settings, clock, stop=threading.Event(), keep=lambda: None)
        ending = executor.execute(ENTRY)
    assert ending is not None
    assert (ending.status == "confirmed", "another actor" in ending.reason) == (sent, not sent), ending


@pytest.mark.parametrize(("timeout_s", "command_s"), [(20.0, 20.0), (60.0, 25.0)])
def test_the_actor_s_commands_end_within_the_lease(timeout_s: float, command_s: float) -> None:
    """A site that lets sacct take a minute has an actor whose commands are stopped before its lease can end."""
    assert ActorSettings.from_config(Config(common=CommonConfig(slurm_timeout_s=timeout_s))).command_s == command_s


def test_an_action_that_waits_is_logged_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """It is tried every few seconds: an hour of it is one line, not hundreds."""
    slurm = _recording(JOB)
    slurm.failure = "slurmctld does not answer"
    settings = ActorSettings(kinds=("cancel",), stop_file=tmp_path / "stop")
    with contextlib.closing(ActionJournal(tmp_path / "actions.sqlite", 0)) as journal:
        executor = ActionExecutor(
            SlowQueue(slurm, []), slurm, journal, settings, SystemClock(), stop=threading.Event(), keep=lambda: None,
        )  # fmt: skip
        assert [executor.execute(ENTRY) for _ in range(5)] == [None] * 5
        other = entry_with(ENTRY, id="c" * 64)
        assert executor.execute(other) is None
    assert [record.event for record in caplog.records] == ["actor-slurm-unreachable"] * 2  # type: ignore[attr-defined]
