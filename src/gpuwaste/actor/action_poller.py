"""ActionPoller: requests actions from the hub, has each executed, and reports its end until the hub has stored it."""

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Self

from gpuwaste.act.actions.action_kind import ActionSlurm
from gpuwaste.act.actions.action_types import ActionEntry
from gpuwaste.actor.action_executor import ActionExecutor, ActionQueue, ActionResult, HubActionQueue
from gpuwaste.actor.action_journal import ActionJournal
from gpuwaste.actor.actor_settings import ActorPorts, ActorSettings
from gpuwaste.core import log_event
from gpuwaste.core.clock import Clock
from gpuwaste.core.errors import GpuwasteError, NoDataError, ParseError, StoreError, WireError
from gpuwaste.core.log_event import BUG, LogEvent
from gpuwaste.core.parts import Part, Parts
from gpuwaste.core.repeat_suppressor import RepeatSuppressor
from gpuwaste.net.hub_client import RefusedError

_LEASE_EVERY_US: Final = 15_000_000
_QUIET_US: Final = 3_600_000_000  # between two log lines about a lasting error
_ENDED: Final = log_event.info("action-ended: {kind} of {subject} by rule {rule}: {status}: {reason}")
_NO_HUB: Final = log_event.warning(
    "actor-hub-unreachable: cannot fetch actions from the hub: {error}",
    "The hub is down, or does not know this host's credential. No action is taken meanwhile.",
)
_NO_JOURNAL: Final = log_event.error(
    "actor-journal-failed: cannot write the journal, no action is taken: {error}",
    "The disk of [actor] state_dir is full or read-only.",
)
_CLOCKS: Final = log_event.error(
    "actor-clocks-differ: this host's clock and the hub's differ by {seconds} s, no action is taken",
    "Set the clocks (chrony, NTP): with wrong clocks an action could be taken after it has expired.",
)
_OTHER: Final = log_event.warning(
    "actor-waits: actor {holder} holds the lease, this one takes no action",
    "Two actors run, on two hosts or with two state_dir: stop one of them.",
)
_LOST: Final = log_event.error(
    "action-end-rejected: the hub rejects the end of {kind} of {subject} ({status}): {reason}",
    "Another actor has taken over, or the hub's store was restored. See `gpuwaste rules actions ID`.",
)


@dataclass(slots=True)
class ActorCounters:
    """What the actor counted since its start, written by its one thread; instants are UTC seconds."""

    ended: Counter[tuple[str, str]] = field(default_factory=Counter)
    troubles: Counter[str] = field(default_factory=Counter)
    answered_utc: float | None = None
    stopped: bool = False
    leased: bool = False
    unreported: bool = False


class ActionPoller(Part):
    """Call `turn` from one thread."""

    def __init__(
        self,
        queue: ActionQueue,
        slurm: ActionSlurm,
        journal: ActionJournal,
        settings: ActorSettings,
        clock: Clock,
        *,
        name: str,
        stop: threading.Event,
        alive: Callable[[], None] = lambda: None,
    ) -> None:
        """`name` is the actor's name at the hub; `alive` is called during waits."""
        self.counters = ActorCounters()
        self._queue = queue
        self._settings = settings
        self._clock = clock
        self._name = name
        self._alive = alive
        self._executor = ActionExecutor(queue, slurm, journal, settings, clock, stop=stop, keep=self._keep)
        self._unreported: ActionResult | None = None
        self._asked_us = 0
        self._trouble = RepeatSuppressor()

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of an actor."""
        ports = parts.get(ActorPorts)
        return cls(
            HubActionQueue(ports.hub, ports.name), ports.slurm, parts.get(ActionJournal), parts.get(ActorSettings),
            ports.clock,
            name=ports.name, stop=ports.stop, alive=ports.alive,
        )  # fmt: skip

    def turn(self) -> float:
        """Do what is due now; return seconds until the next turn. Raises no error of an outage."""
        poll_s = self._settings.poll_s
        self.counters.stopped = self._settings.stopped()
        try:
            if self._unreported is not None:
                self._report(self._unreported)
            return poll_s if self.counters.stopped else self._take()
        except (WireError, NoDataError, ParseError) as error:
            self._say(_NO_HUB, "hub", error=error)
        except StoreError as error:
            self._say(_NO_JOURNAL, "journal", error=error)
        return poll_s

    def _take(self) -> float:
        self._asked_us = self._clock.mono_us()
        lent = self._queue.claim(self._settings.kinds)
        now = self._clock.utc_us() / 1e6
        self.counters.answered_utc = now
        self.counters.leased = lent.holder == self._name
        if not self.counters.leased:
            self._say(_OTHER, "lease", holder=lent.holder)
            return self._settings.poll_s
        if abs(lent.now - now) > self._settings.max_clock_s:
            self._say(_CLOCKS, "clock", seconds=round(abs(lent.now - now)))
            return self._settings.poll_s
        self._trouble.over()
        if lent.action is None:
            return self._settings.poll_s
        ending = self._executed(lent.action)
        if ending is None:
            self.counters.troubles["waits"] += 1
            return self._settings.poll_s
        return 0.0 if self._report(ending) else self._settings.poll_s

    def _executed(self, entry: ActionEntry) -> ActionResult | None:
        """Have an action executed; one that hits a bug of gpuwaste fails, so that it does not block the others."""
        try:
            return self._executor.execute(entry)
        except GpuwasteError:
            raise
        except Exception as error:  # noqa: BLE001 a defect in one action must not keep the others waiting
            BUG.log(error, what="action")
            return ActionResult(entry, "failed", "bug in gpuwaste, see the actor's log; result unknown")

    def _report(self, ending: ActionResult) -> bool:
        """Report an end, which is kept until the hub has answered; return whether the hub accepts it."""
        entry = ending.entry
        new = self._unreported is None
        self._unreported, self.counters.unreported = ending, True
        if new:
            self.counters.ended[entry.kind, ending.status] += 1
            words = ending.reason or ending.answer or "done"
            _ENDED.log(kind=entry.kind, subject=entry.subject, rule=entry.rule, status=ending.status, reason=words)
        try:
            taken = self._queue.report(entry.id, ending.status, reason=ending.reason, answer=ending.answer)
            reason = "" if taken.taken else taken.reason
        except (NoDataError, RefusedError) as error:
            reason = str(error)
        self._unreported, self.counters.unreported = None, False
        if reason:
            _LOST.log(kind=entry.kind, subject=entry.subject, status=ending.status, reason=reason)
        return not reason

    def _say(self, event: LogEvent, kind: str, **fields: object) -> None:
        """Count an error, and log it once while it lasts."""
        self.counters.troubles[kind] += 1
        if self._trouble.news(kind, self._clock.mono_us(), _QUIET_US):
            event.log(**fields)

    def _keep(self) -> None:
        """Signal liveness, and keep the lease."""
        self._alive()
        now_us = self._clock.mono_us()
        if now_us - self._asked_us < _LEASE_EVERY_US:
            return
        self._asked_us = now_us
        try:
            self._queue.claim(())
        except (WireError, NoDataError, ParseError):
            self.counters.troubles["hub"] += 1
