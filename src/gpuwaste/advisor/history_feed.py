"""Feed: a thread that reads job events from the hub, and checks what else changes while the advisor serves.

Events are handed over in small pages and applied on the loop's thread between requests, one at a time. The champion,
the partitions and the policies' precision are checked here and swapped there, each in one step.
"""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, Self

from gpuwaste.advisor.advisor_history import NOT_SAVED, SAVED, STALE, AdvisorHistory, Pending, Saving
from gpuwaste.advisor.advisor_ports import AdvisorPorts
from gpuwaste.advisor.submit_server import Server
from gpuwaste.core import log_event
from gpuwaste.core.clock import Clock
from gpuwaste.core.codec import convert
from gpuwaste.core.config import Config
from gpuwaste.core.errors import GpuwasteError, StoreError, WireError
from gpuwaste.core.log_event import BUG
from gpuwaste.core.parts import Part, Parts
from gpuwaste.core.repeat_suppressor import RepeatSuppressor
from gpuwaste.core.worker import Bus, Worker, backoff_s
from gpuwaste.jobs.history.history_follower import Follower
from gpuwaste.jobs.job_event import event_from_json
from gpuwaste.net.health_types import HealthAnswer
from gpuwaste.net.hub_client import HubClient

PAGE: Final = 50  # events of a page while serving: a larger page blocks the interpreter for too long
MAX_PENDING: Final = 2000
SAVE_EVERY_S: Final = 900.0
SLOW_EVERY_S: Final = 120.0  # partitions, precision
_PAUSE_S: Final = 0.005  # between two pages
_RETRY_S: Final = 60.0  # longest wait after failures
_HOLD_S: Final = 10.0
_log = logging.getLogger(__name__)
_AGAIN: Final = log_event.info("history-current: job history is fetched again after {failures} failed attempts")


@dataclass(frozen=True, slots=True)
class Turn:
    """The feed has queried the hub, successfully or not."""


@dataclass(frozen=True, slots=True)
class SlowTurn:
    """Like Turn, every two minutes."""


class Feed(Part):
    """The feed, run by `worker`; `call` runs work on the loop's thread."""

    def __init__(
        self,
        hub: HubClient,
        follower: Follower,
        pending: Pending,
        call: Callable[[Callable[[], None]], None],
        clock: Clock,
        *,
        bus: Bus,
        every_s: float,
        state_dir: Path,
    ) -> None:
        """Take the follower of events; `bus` gets Turn, SlowTurn and Saving."""
        self.health: HealthAnswer | None = None  # the hub's last answer about itself
        self._hub = hub
        self._follower = follower
        self._pending = pending
        self._call = call
        self._bus = bus
        self._clock = clock
        self._every_s = every_s
        self._saved = state_dir / SAVED
        self._asked = follower.seq
        self._trouble = RepeatSuppressor()
        self._lag_s = 0.0
        self._saved_us = clock.mono_us()
        self._slow_us: int | None = None
        self.worker = Worker("feed", self.step, clock)

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of an advisor."""
        ports = parts.get(AdvisorPorts)
        return cls(
            ports.hub, parts.get(AdvisorHistory).follower, parts.get(Pending), parts.get(Server).call, ports.clock,
            bus=parts.get(Bus), every_s=parts.get(Config).advisor.history_every_s, state_dir=ports.state_dir,
        )  # fmt: skip

    @property
    def failures(self) -> int:
        """The number of failed queries of the hub in a row."""
        return self._trouble.times

    def step(self) -> float:
        """Do what is due; return the seconds until the next time. Raises nothing."""
        wait_s = self._every_s
        try:
            self._follow()
        except GpuwasteError as error:
            wait_s = self._failed(str(error))
        except Exception as error:  # noqa: BLE001 a defect must not end the thread
            BUG.log(error, what="fetch of the job history")
            wait_s = self._failed(f"{type(error).__name__}: {error}")
        else:
            if failures := self._trouble.over():
                _AGAIN.log(failures=failures)
        for work in self._due():
            self._guarded(work)
        return wait_s

    def follow(self, follower: Follower) -> None:
        """Continue with another history, which gets all later events; on the loop's thread, while `step` waits."""
        self._follower, self._asked = follower, follower.seq

    def save(self) -> None:
        """Save the history while no event is applied; answers continue. Raises nothing."""
        self._saved_us = self._clock.mono_us()
        held = threading.Event()

        def hold() -> None:
            self._pending.hold(held=True)
            held.set()

        self._call(hold)
        try:
            if held.wait(_HOLD_S):
                self._follower.save(self._saved, still=True)
                self._bus.publish(Saving())
        except StoreError as error:
            NOT_SAVED.log(error=error)
        finally:
            self._call(lambda: self._pending.hold(held=False))

    def _follow(self) -> None:
        """Read new events until there are no more. Raises GpuwasteError."""
        self._lag_s = self._hub_lag_s()
        while not self.worker.stopping.is_set():
            began_us = self._clock.mono_us()
            events = self._hub.history(self._asked, PAGE, event_from_json)
            if events and events[-1].seq <= self._asked:
                raise WireError(f"the hub's history does not continue after event {self._asked}: see hub_url")
            self._pending.items.extend(events)
            if events:
                self._asked = events[-1].seq
            if len(events) < PAGE:
                self._pending.items.append(began_us - int(self._lag_s * 1e6))
                return
            while len(self._pending) > MAX_PENDING and not self._clock.wait(self.worker.stopping, _PAUSE_S):
                pass
            self._clock.wait(self.worker.stopping, _PAUSE_S)

    def _hub_lag_s(self) -> float:
        """Return how far the hub is behind accounting. Raises GpuwasteError."""
        self.health = convert(self._hub.get("/v1/health"), HealthAnswer, "the hub's health")
        return max(0.0, self.health.accounting.lag_s or 0.0)

    def _due(self) -> list[Callable[[], None]]:
        now_us = self._clock.mono_us()
        due: list[Callable[[], None]] = [partial(self._bus.publish, Turn())]
        if self._slow_us is None or now_us - self._slow_us >= SLOW_EVERY_S * 1e6:
            self._slow_us = now_us
            due.append(partial(self._bus.publish, SlowTurn()))
        if now_us - self._saved_us >= SAVE_EVERY_S * 1e6:
            due.append(self.save)
        return due

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except GpuwasteError as error:
            _log.debug("%s", error)
        except Exception as error:  # noqa: BLE001 the same
            BUG.log(error, what="other work of the job history")

    def _failed(self, words: str) -> float:
        if self._trouble.news(words):
            STALE.log(error=words)
        return backoff_s(self._trouble.times, self._every_s, _RETRY_S)
