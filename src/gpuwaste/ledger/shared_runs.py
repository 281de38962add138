"""SharedRuns: has the runs that are not judged once and for all judged together, once a minute while somebody reads."""

import threading
from collections import OrderedDict
from typing import Final, Self

from gpuwaste.core import log_event
from gpuwaste.core.clock import Clock
from gpuwaste.core.errors import StoreError
from gpuwaste.core.parts import Part, Parts
from gpuwaste.core.worker import Bus, Worker
from gpuwaste.jobs.host_ports import HostPorts
from gpuwaste.ledger.judging import Judging
from gpuwaste.ledger.ledger_settings import LedgerSettings
from gpuwaste.ledger.open_run_snapshot import OpenRunJudge, OpenRunSnapshot, Window
from gpuwaste.store.hub.hub_store import HubStore

FRESH_S: Final = 60.0  # what is younger is not judged anew: agents report every few minutes
OLD_S: Final = 180.0  # what is older is not shown
LEAST_RUNS: Final = 1000  # of fewer a document judges its own: that takes as long, and has what came a second ago
_WINDOWS: Final = 8
_WINDOW_S: Final = 900.0  # after which a window that nobody asked for is left out
_PATIENCE_S: Final = 10.0
_NOT_TAKEN: Final = log_event.warning(
    "runs-not-shared: cannot judge open runs together, each report judges its own: {error}",
    "The store or its disk refuses, or the memory of the hub is used up. Reports are correct but slower.",
)


class SharedRuns(Part):
    """Any thread may ask; `worker` judges."""

    def __init__(self, store: HubStore, settings: LedgerSettings, clock: Clock, least: int = LEAST_RUNS) -> None:
        """Take how many runs must be due."""
        self._judge = OpenRunJudge(store)
        self._settings = settings
        self._clock = clock
        self._least = least
        self._lock = threading.Lock()
        self._known: OpenRunSnapshot | None = None
        self._taken_us: int | None = None
        self._asked = False
        self._windows: OrderedDict[Window, int] = OrderedDict()  # when each was asked for last
        self._making = threading.Event()
        self._making.set()
        self.worker = Worker("shared-runs", self._turn, clock)

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of a hub."""
        part = cls(parts.get(HubStore), parts.get(Judging).standing, parts.get(HostPorts).clock)
        parts.get(Bus).subscribe(LedgerSettings, part.judge_by)
        return part

    def judge_by(self, settings: LedgerSettings) -> None:
        """Use other thresholds from the next time on; for any thread."""
        with self._lock:
            self._settings = settings
            self._known, self._taken_us = None, None

    def current(self, *windows: Window) -> OpenRunSnapshot | None:
        """Return what was judged last, and have the parts of these windows judged from the next time on.

        None where a document is to judge its own runs. Whoever comes while the first is made waits for it.
        """
        with self._lock:
            self._asked = True
            for window in windows:
                self._windows[window] = self._clock.mono_us()
                self._windows.move_to_end(window)
            while len(self._windows) > _WINDOWS:
                self._windows.popitem(last=False)
            known, age_s = self._known, self._age_s()
            due = self._due()
        if due:
            self.worker.wake()
        if age_s > OLD_S and not self._making.is_set():
            self._making.wait(_PATIENCE_S)
            with self._lock:
                known, age_s = self._known, self._age_s()
        return known if age_s <= OLD_S else None

    def take(self) -> OpenRunSnapshot | None:
        """Judge anew. Raises StoreError."""
        with self._lock:
            since_us = self._clock.mono_us() - int(_WINDOW_S * 1e6)
            for window in [window for window, asked_us in self._windows.items() if asked_us < since_us]:
                del self._windows[window]
            settings, windows, self._asked = self._settings, list(self._windows), False
        known = self._judge.take(settings, self._clock.utc_us() // 1_000_000, windows, self._least)
        with self._lock:
            if settings is self._settings:
                self._known, self._taken_us = known, self._clock.mono_us()
        return known

    def _due(self) -> bool:
        """Tell whether somebody reads what is too old, or lacks a window."""
        known = self._known
        lacking = known is not None and not self._windows.keys() <= set(known.windows)
        return self._asked and (lacking or self._age_s() > FRESH_S)

    def _age_s(self) -> float:
        taken_us = self._taken_us
        return float("inf") if taken_us is None else (self._clock.mono_us() - taken_us) / 1e6

    def _turn(self) -> float | None:
        with self._lock:
            due = self._due()
        if due:
            self._making.clear()
            try:
                self.take()
            except StoreError as error:
                _NOT_TAKEN.log(error=error)
            finally:
                self._making.set()
        return None
