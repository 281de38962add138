"""ActionExecutor: executes one action of the hub's queue: look, record it as sent, act, confirm.

An action is recorded as sent, on disk at the hub and here, before Slurm gets the command. An actor that finds this
record later looks first: what Slurm shows as done is confirmed, what it shows as not done is sent once more, and what
it cannot show is given up. So nothing is done twice, whenever the actor is killed.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from gpuwaste.act.actions.action_kind import (
    ActionRequest,
    ActionSlurm,
    Execution,
    LookResult,
    Plan,
    SiteProgram,
    actions,
)
from gpuwaste.act.actions.action_types import ActionEntry, ActionLent, ActionTaken, Outcome
from gpuwaste.actor.action_journal import ActionJournal
from gpuwaste.actor.actor_settings import ActorSettings
from gpuwaste.core import log_event
from gpuwaste.core.clock import Clock
from gpuwaste.core.codec import convert
from gpuwaste.core.errors import GpuwasteError, ParseError, SlurmError
from gpuwaste.core.log_event import LogEvent
from gpuwaste.core.repeat_suppressor import RepeatSuppressor
from gpuwaste.core.text import words_of
from gpuwaste.net.hub_client import HubClient
from gpuwaste.slurm.clients.command import CommandError

CLAIM_PATH: Final = "/v1/actions/claim"
MAX_SENDS: Final = 2
_QUIET_US: Final = 3_600_000_000  # between two log lines about one waiting action
_MARGIN_S: Final = 5.0  # of the lease: the hub counts full seconds, and a stopped command ends a bit later
_LOOK_S: Final = 1.0  # between two looks for a confirmation
_NO_SLURM: Final = log_event.warning(
    "actor-slurm-unreachable: cannot read {subject} from Slurm, action {kind} waits: {error}",
    "slurmctld is down or slow. The action is retried until it expires.",
)
_NOT_SENT: Final = log_event.warning(
    "action-not-sent: {kind} of {subject} is not sent: {reason}",
    "Actions are stopped, the hourly limit is reached, or the action has expired. It waits until it expires.",
)


class ActionQueue(Protocol):
    """The source of actions. Raises WireError, NoDataError, ParseError."""

    def claim(self, kinds: Sequence[str]) -> ActionLent:
        """Return the next action, if any, of these kinds; without kinds only renew the lease."""
        ...

    def report(
        self, action: str, status: Outcome, *, reason: str = "", answer: str = "", plan: Mapping[str, str] | None = None
    ) -> ActionTaken:
        """Report a step; the answer is whether the hub accepts it."""
        ...


class HubActionQueue:
    """The hub behind /v1/actions."""

    def __init__(self, hub: HubClient, actor: str) -> None:
        """`actor` names this actor, the same after a restart."""
        self._hub = hub
        self._actor = actor

    def claim(self, kinds: Sequence[str]) -> ActionLent:
        """POST /v1/actions/claim."""
        found = self._hub.post_signed(CLAIM_PATH, {"actor": self._actor, "kinds": list(kinds)})
        return convert(found, ActionLent, "the hub's request")

    def report(
        self, action: str, status: Outcome, *, reason: str = "", answer: str = "", plan: Mapping[str, str] | None = None
    ) -> ActionTaken:
        """POST /v1/actions/ID/step."""
        body = {"actor": self._actor, "status": status, "reason": reason[:2000], "answer": answer[:8000]}
        if plan is not None:
            body["plan"] = dict(plan)  # type: ignore[assignment]
        return convert(self._hub.post_signed(f"/v1/actions/{action}/step", body), ActionTaken, "the hub's answer")


@dataclass(frozen=True, slots=True)
class ActionResult:
    """The end of an action, for the hub."""

    entry: ActionEntry
    status: Outcome
    reason: str = ""
    answer: str = ""


@dataclass(frozen=True, slots=True)
class _ActionTask:
    entry: ActionEntry
    execution: Execution
    request: ActionRequest
    plan: Plan
    sends: int


class ActionExecutor:
    """Use from one thread. `keep` is called every second during waits: it keeps the lease and the watchdog."""

    def __init__(
        self,
        queue: ActionQueue,
        slurm: ActionSlurm,
        journal: ActionJournal,
        settings: ActorSettings,
        clock: Clock,
        *,
        stop: threading.Event,
        keep: Callable[[], None],
    ) -> None:
        self._queue = queue
        self._slurm = slurm
        self._journal = journal
        self._settings = settings
        self._clock = clock
        self._stop = stop
        self._keep = keep
        self._trouble = RepeatSuppressor()

    def execute(self, entry: ActionEntry) -> ActionResult | None:
        """Execute an action; None: it waits. Raises WireError, ParseError, NoDataError, StoreError: it waits too."""
        task = self._task(entry)
        if isinstance(task, ActionResult):
            return task
        try:
            seen = task.execution.look(task.request, self._slurm, task.plan)
        except ParseError as error:  # only of this job: it must not block the others
            return ActionResult(entry, "failed", f"not sent now: {error}")
        except SlurmError as error:
            return self._unseen(task, error)
        self._keep()
        if seen.standing == "open":
            return self._confirm(task, task.plan, "", SlurmError("the actor ended while this was sent"))
        if seen.standing == "todo":
            return self._again(task) or self._send(task, seen.plan)
        return _over(entry, seen, sent=bool(task.plan))

    def _task(self, entry: ActionEntry) -> _ActionTask | ActionResult:
        """Return the task, or why this actor must not do it."""
        kind = actions().get(entry.kind)
        if kind is None or kind.execution is None or kind.name not in self._settings.kinds:
            return ActionResult(entry, "failed", f"[actor] actions does not permit {entry.kind!r:.40}")
        if reason := kind.refusal(entry):
            return ActionResult(entry, "failed", reason)
        if reason := self._settings.exempt(entry):
            return ActionResult(entry, "moot", reason)
        before = self._journal.before(entry.id)
        plan = before.plan or (entry.plan if entry.status == "sent" else {})
        request = kind.request(entry, self._settings.exempt_accounts)
        return _ActionTask(entry, kind.execution, request, plan, max(before.times, entry.sends))

    def _unseen(self, task: _ActionTask, error: SlurmError) -> ActionResult | None:
        """Let an action wait for Slurm; one that was sent waits until it expires: it blocks all others."""
        entry = task.entry
        if task.plan and self._expired(entry):
            return ActionResult(entry, "failed", f"unknown whether Slurm accepted it: {error}")
        self._waits(_NO_SLURM, entry, error=error)
        return None

    def _again(self, task: _ActionTask) -> ActionResult | None:
        """Return why an action that was sent before is given up; None if it is to be sent: first time or again."""
        if not task.plan:
            return None
        if not task.execution.visible:
            return ActionResult(
                task.entry, "failed", "the actor ended while this was sent: unknown whether Slurm accepted it"
            )
        if task.sends >= MAX_SENDS:
            return ActionResult(task.entry, "failed", f"sent {task.sends} times without effect in Slurm")
        if self._expired(task.entry):  # what the rule saw may be hours old
            return ActionResult(task.entry, "failed", "no effect in Slurm; not sent again: the action has expired")
        return None

    def _send(self, task: _ActionTask, plan: Plan) -> ActionResult | None:
        entry, now = task.entry, self._clock.utc_s()
        if reason := self._hindrance(entry, now):
            self._waits(_NOT_SENT, entry, reason=reason)
            return None
        asked_us = self._clock.mono_us()
        taken = self._queue.report(entry.id, "sent", plan=plan)
        if not taken.taken:
            self._waits(_NOT_SENT, entry, reason=taken.reason)
            return None
        self._journal.note(entry.id, plan, now)
        if self._settings.stopped():
            return ActionResult(entry, "failed", "stopped before it was sent")
        if ending := self._changed(task, plan):
            return ending
        passed_s = (self._clock.mono_us() - asked_us) / 1e6
        # The next actor with the lease may send a visible action again: this command must end before that.
        if passed_s + self._settings.command_s + _MARGIN_S > taken.lease_s:
            why = "another actor may take over before the command ends"
            return ActionResult(entry, "failed", f"not sent: hub, disk and Slurm took {passed_s:.0f} s: {why}")
        return self._act(task, plan)

    def _changed(self, task: _ActionTask, plan: Plan) -> ActionResult | None:
        """Look again: while hub and disk recorded the step, the run may have ended, or started again."""
        try:
            seen = task.execution.look(task.request, self._slurm, task.plan)
        except (SlurmError, ParseError) as error:
            return ActionResult(task.entry, "failed", f"not sent: cannot read the job from Slurm: {error}")
        if seen.standing != "todo":
            return _over(task.entry, seen, sent=bool(task.plan))
        if seen.plan != plan:
            return ActionResult(task.entry, "failed", "not sent: the run has changed meanwhile")
        return None

    def _act(self, task: _ActionTask, plan: Plan) -> ActionResult | None:
        answer, error = "", None
        try:
            answer = words_of(self._done(task, plan))
        except (SlurmError, ParseError) as found:
            error = found
        if task.execution.visible:
            return self._confirm(task, plan, answer, error)
        by_program = isinstance(task.execution.act, SiteProgram)
        if error is None:
            words = (
                "the program ended with exit code 0"
                if by_program
                else "Slurm accepted it; Slurm does not show the result"
            )
            return ActionResult(task.entry, "confirmed", words, answer)
        taken = "the program has done it" if by_program else "Slurm accepted it"
        unclear = "" if _said_no(error) else f"unknown whether {taken}: "
        return ActionResult(task.entry, "failed", f"{unclear}{error}")

    def _done(self, task: _ActionTask, plan: Plan) -> str:
        """Act; return the output of Slurm's command or of the program. Raises SlurmError, ParseError."""
        act = task.execution.act
        if isinstance(act, SiteProgram):
            return self._settings.programs.run(act, plan, self._keep)
        return act(task.request, self._slurm, plan)

    def _confirm(self, task: _ActionTask, plan: Plan, answer: str, error: GpuwasteError | None) -> ActionResult | None:
        """Look until Slurm shows the action; None if the actor is stopped meanwhile: the next one continues."""
        until_us = self._clock.mono_us() + int(self._settings.confirm_s * 1e6)
        trouble = ""
        while True:
            try:
                seen = task.execution.look(task.request, self._slurm, plan)
            except (SlurmError, ParseError) as found:
                trouble = f"; cannot read the job from Slurm: {found}"
            else:
                trouble = ""
                if seen.standing in {"done", "moot"}:
                    return _over(task.entry, seen, sent=True, answer=answer)
                if seen.standing == "todo" and error is not None and _said_no(error):
                    return ActionResult(task.entry, "failed", str(error))
            if self._clock.mono_us() >= until_us:
                if not trouble and seen.standing == "open" and error is None:  # a node may hang there for hours
                    return ActionResult(task.entry, "confirmed", f"Slurm accepted it; {seen.reason}", answer)
                said = str(error) if error else "Slurm accepted the command"
                waited = f"no effect in Slurm after {self._settings.confirm_s:g} s"
                return ActionResult(task.entry, "failed", f"{said}; {waited}{trouble}", answer)
            self._keep()
            if self._clock.wait(self._stop, _LOOK_S):
                return None

    def _hindrance(self, entry: ActionEntry, now: int) -> str:
        if self._settings.stopped():
            return f"{self._settings.stop_file} exists"
        if entry.expires <= now:
            return "the action has expired"
        if self._journal.last_hour(now) >= self._settings.max_per_hour:
            return f"{self._settings.max_per_hour} actions were sent in the last hour: [actor] max_per_hour"
        return ""

    def _waits(self, event: LogEvent, entry: ActionEntry, **why: object) -> None:
        """Log why an action waits, once per wait: it is retried every few seconds."""
        if self._trouble.news(f"{event.id} {entry.id}", self._clock.mono_us(), _QUIET_US):
            event.log(kind=entry.kind, subject=entry.subject, **why)

    def _expired(self, entry: ActionEntry) -> bool:
        return entry.expires <= self._clock.utc_s()


def _over(entry: ActionEntry, seen: LookResult, *, sent: bool, answer: str = "") -> ActionResult:
    """Return the result of an action that Slurm shows as done, or whose subject no longer exists."""
    if seen.standing == "moot":
        return ActionResult(entry, "moot", seen.reason, answer)
    if not sent:
        return ActionResult(entry, "moot", f"already done: {seen.reason}")
    return ActionResult(entry, "confirmed", seen.reason, answer)


def _said_no(error: GpuwasteError) -> bool:
    """Return whether Slurm's command ended with its own error, rather than by timeout."""
    return isinstance(error, CommandError) and error.code is not None
