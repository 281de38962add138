"""ActionPoller: one action at a time, and none that keeps the others waiting for ever."""

import contextlib
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gpuwaste.act.actions.action_types import ActionEntry, ActionLent, ActionTaken, Outcome
from gpuwaste.actor.action_journal import ActionJournal
from gpuwaste.actor.action_poller import ActionPoller
from gpuwaste.actor.actor_settings import ActorSettings
from gpuwaste.core.clock import SystemClock
from gpuwaste.slurm.clients.slurmctld_jobs import RunningJob
from gpuwaste.testing.fake_slurm import FakeSlurm

ENTRY = ActionEntry(
    id="a" * 64, rule="idle", rule_hash="b" * 64, kind="cancel", subject="gw/8@100", cluster="gw", job_id=8, start=100,
    user="alice", account="proj1", approve="none", decided=0, expires=2**40, status="intended", since=0,
)  # fmt: skip


@dataclass
class OneAction:
    """A hub that lends one action until its end is told."""

    told: list[tuple[Outcome, str]] = field(default_factory=list)

    def claim(self, kinds: Sequence[str]) -> ActionLent:
        """Lend it."""
        now = SystemClock().utc_s()
        return ActionLent(
            now=now, lease_s=60, holder="me", stopped=False, action=ENTRY if kinds and not self.told else None
        )

    def report(
        self, action: str, status: Outcome, *, reason: str = "", answer: str = "", plan: Mapping[str, str] | None = None
    ) -> ActionTaken:
        """Note a step."""
        del action, answer, plan
        self.told.append((status, reason))
        return ActionTaken(taken=True, status=status, lease_s=60)


class BrokenSlurm(FakeSlurm):
    """A client with a bug of ours."""

    def job(self, job_id: int) -> list[RunningJob]:
        """Meet the bug."""
        raise KeyError(job_id)


def test_a_defect_ends_its_action(tmp_path: Path) -> None:
    """What one action meets is not met again and again: it fails, and the next one has its turn."""
    queue = OneAction()
    settings = ActorSettings(kinds=("cancel",), stop_file=tmp_path / "stop")
    with contextlib.closing(ActionJournal(tmp_path / "actions.sqlite", 0)) as journal:
        poller = ActionPoller(
            queue, BrokenSlurm(), journal, settings, SystemClock(), name="me", stop=threading.Event()  # type: ignore[arg-type]
        )  # fmt: skip
        waits = [poller.turn() for _ in range(2)]
    assert [status for status, _ in queue.told] == ["failed"]
    assert waits == [0.0, settings.poll_s]
    assert poller.counters.ended == {("cancel", "failed"): 1}
