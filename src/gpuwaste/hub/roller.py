"""Roller: adds up old hours by day, a step at a time, on a thread of its own; ingest goes on between the steps."""

import logging
import threading
import time
from collections.abc import Iterator
from typing import Final

from gpuwaste.core.clock import Clock
from gpuwaste.core.errors import GpuwasteError
from gpuwaste.core.units import DAY_S
from gpuwaste.core.worker import Worker
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.store.hub.packing import DayPacking, JobPacking
from gpuwaste.store.hub.rollup import Rollup
from gpuwaste.waste.load import HANG_LIMITS

EVERY_S: Final = 3600.0
FIRST_S: Final = 30.0  # after the start, when agents and importer have the most to write
_log = logging.getLogger(__name__)


class Roller:
    """`worker` runs it; `days` may be set by any thread."""

    def __init__(self, store: HubStore, clock: Clock, days: int) -> None:
        self._store = store
        self._rollup = Rollup(store, HANG_LIMITS)
        self._packings = (DayPacking(store), JobPacking(store))
        self._clock = clock
        self.days = days
        self.worker = Worker("rollup", self._turn, clock)

    def _turn(self) -> float:
        self.step(self.worker.stopping)
        return EVERY_S

    def step(self, stop: threading.Event) -> int:
        """Add up what is due, then pack; returns the hours taken. Raises nothing that the store can cause."""
        if self.days <= 0:
            return 0
        before = self._clock.utc_us() // 1_000_000 - self.days * DAY_S
        taken = self._do(self._rollup.steps(before), stop)
        moved = sum(self._do(packing.steps(before), stop) for packing in self._packings)
        if taken or moved:
            self._store.checkpoint()
        if taken:
            _log.info("%d hours are older than %d days and were added up by day", taken, self.days)
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
            _log.warning("old hours are not added up by day, they stay as they are: %s", error)
        return taken
