"""Roller: adds up old hours by day, a step at a time, on a thread of its own; ingest goes on between the steps."""

import threading
import time
from collections.abc import Iterator
from typing import Final, Self

from gpuwaste.core import log_event
from gpuwaste.core.clock import Clock
from gpuwaste.core.config import Config
from gpuwaste.core.errors import GpuwasteError
from gpuwaste.core.parts import Part, Parts, Reloads
from gpuwaste.core.units import DAY_S
from gpuwaste.core.worker import Worker
from gpuwaste.jobs.host_ports import HostPorts
from gpuwaste.ledger.load import HANG_LIMITS
from gpuwaste.ledger.packing import DayPacking, JobPacking, JudgedPacking, Packing
from gpuwaste.ledger.rollup import Rollup
from gpuwaste.store.hub.hub_store import HubStore

FIRST_S: Final = 30.0  # after the start, when agents and importer have the most to write
_FAILED: Final = log_event.warning(
    "rollup-failed: cannot sum up old hours by day, retry later: {error}",
    "The store or its disk refuses. Reports are correct meanwhile.",
)
_DONE: Final = log_event.info("rollup-done: {rows} hours older than {days} days summed up by day")


class Roller(Part):
    """`worker` runs it; `days` may be set by any thread."""

    late = True

    def __init__(self, store: HubStore, clock: Clock, days: int) -> None:
        self._store = store
        self._rollup = Rollup(store, HANG_LIMITS)
        packings: tuple[Packing, ...] = (DayPacking(store), JobPacking(store), JudgedPacking(store))
        self._packings = packings if store.packs else ()
        self._clock = clock
        self.days = days
        self.worker = Worker("rollup", self._turn, clock)

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of a hub."""
        return cls(parts.get(HubStore), parts.get(HostPorts).clock, parts.get(Config).hub.rollup_days)

    @property
    def reloads(self) -> Reloads:
        """How old hours are that are added up."""
        return {("hub.rollup_days",): lambda c: setattr(self, "days", c.hub.rollup_days)}

    def _turn(self) -> float:
        self.step(self.worker.stopping)
        return self._store.upkeep_s

    def step(self, stop: threading.Event) -> int:
        """Add up what is due, pack, and tidy the store; returns the hours taken. Raises nothing that it can cause."""
        taken = self._roll(stop) if self.days > 0 else 0
        self._store.checkpoint()
        return taken

    def _roll(self, stop: threading.Event) -> int:
        before = self._clock.utc_us() // 1_000_000 - self.days * DAY_S
        taken = self._do(self._rollup.steps(before), stop)
        for packing in self._packings:
            self._do(packing.steps(before), stop)
        if taken:
            _DONE.log(rows=taken, days=self.days)
        return taken

    def _do(self, steps: Iterator[int], stop: threading.Event) -> int:
        """Do steps until `stop` is set, with pauses; returns the rows that they took."""
        taken = 0
        began = time.monotonic()
        try:
            for rows in steps:
                taken += rows
                # Half of the time is left to whoever waits for the processors.
                if stop.is_set() or self._clock.wait(stop, time.monotonic() - began if rows else 0.0):
                    break
                began = time.monotonic()
        except GpuwasteError as error:
            _FAILED.log(error=error)
        return taken
