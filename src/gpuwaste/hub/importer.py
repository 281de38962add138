"""The one importer of accounting: sacct into the hub's store, a window at a time, with an overlap for late rows."""

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from gpuwaste.core.clock import Clock
from gpuwaste.core.errors import GpuwasteError
from gpuwaste.core.job import JobRecord
from gpuwaste.core.run import RunKey
from gpuwaste.core.units import DAY_S
from gpuwaste.hub.metrics import HubMetrics
from gpuwaste.hub.site import Site
from gpuwaste.slurm.client import SlurmClient
from gpuwaste.slurm.defaults import SiteDefaults
from gpuwaste.store.hub.hub_store import Aside, HubStore

CHUNK: Final = 2000  # runs written at a time
WINDOW_S: Final = DAY_S  # accounting read at a time
PARTITIONS_EVERY_S: Final = 300.0
WIDE_EVERY_S: Final = 600.0
BACKOFF_MAX_S: Final = 300.0
_BACKOFF_FIRST_S: Final = 5.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ImportStatus:
    """How the import stands; `read_until` is UTC seconds, None before anything was read."""

    read_until: int | None = None
    failures: int = 0  # in a row
    error: str = ""
    bad_rows: int = 0  # since the start


@dataclass(frozen=True, slots=True)
class ImportSettings:
    """Seconds between imports, seconds read again each time, days read by the first."""

    every_s: float = 60.0
    overlap_s: float = 3600.0
    first_days: int = 30


class Importer:
    """Brings runs from accounting; keeps trying while it is down."""

    def __init__(
        self,
        store: HubStore,
        slurm: SlurmClient,
        site: Site,
        *,
        metrics: HubMetrics,
        clock: Clock,
        settings: ImportSettings,
        learn: Callable[[Sequence[JobRecord]], None] = lambda _: None,
        tidy: Callable[[], None] = lambda: None,
    ) -> None:
        self._store = store
        self._slurm = slurm
        self._site = site
        self._metrics = metrics
        self._clock = clock
        self.settings = settings
        self._learn = learn
        self._tidy = tidy
        self._partitions_at_us: int | None = None
        self._wide_at_us: int | None = None
        self._missing: frozenset[RunKey] = frozenset()
        self.status = ImportStatus()
        self.defaults: SiteDefaults | None = None  # what the partitions give, None until Slurm has been asked

    def run(self, stop: threading.Event) -> None:
        """Import until `stop` is set."""
        while not stop.is_set():
            wait_s = self.step()
            self._clock.wait(stop, wait_s)

    def step(self) -> float:
        """Import once; returns the seconds to wait. Raises nothing that Slurm or the store can cause."""
        try:
            self._import()
            self._partitions()
            self._tidy()
        except GpuwasteError as error:
            return self._failed(str(error))
        except Exception as error:  # noqa: BLE001 a defect must not end the import for good; the log has its place
            _log.exception("defect in the import from accounting")
            return self._failed(f"defect: {type(error).__name__}: {error}")
        if self.status.failures:
            _log.info("accounting is read again after %d failed attempts", self.status.failures)
        self.status = replace(self.status, failures=0, error="")
        return self.settings.every_s

    def lag_s(self) -> float | None:
        """Return the age of the newest accounting that was read."""
        until = self.status.read_until
        return None if until is None else max(0.0, self._clock.utc_us() / 1e6 - until)

    def _import(self) -> None:
        cluster = self._site.cluster()
        now = self._clock.utc_us() // 1_000_000
        key = f"sacct:{cluster}"
        mark = self._store.mark(key)
        self.status = replace(self.status, read_until=mark)
        first = now - self.settings.first_days * DAY_S if mark is None else mark - int(self.settings.overlap_s)
        seen: set[RunKey] = set()
        start = min(first, now)
        while True:
            end = min(start + WINDOW_S, now)
            seen |= self._window(start, end)
            self._store.set_mark(key, end)
            self.status = replace(self.status, read_until=end)
            if end >= now:
                break
            start = end
        self._refresh_missing(cluster, seen, first, now)

    def _window(self, start: int, end: int) -> set[RunKey]:
        """Read the runs that overlap [start, end]; returns their keys."""
        seen: set[RunKey] = set()
        runs: list[JobRecord] = []
        bad: list[Aside] = []
        for row in self._slurm.accounting(start, end):
            if isinstance(row, JobRecord):
                runs.append(row)
            else:
                bad.append(Aside(row.line, row.reason, row.raw))
            if len(runs) >= CHUNK:
                seen |= self._write(runs)
                runs = []
        seen |= self._write(runs)
        self._set_aside(bad)
        return seen

    def _write(self, runs: list[JobRecord]) -> set[RunKey]:
        self._store.upsert_jobs(runs)
        self._learn(runs)
        return {run.run_key for run in runs}

    def _set_aside(self, bad: list[Aside]) -> None:
        new = self._store.quarantine("sacct", bad)
        if new:
            self._metrics.quarantined("sacct", new)
            self.status = replace(self.status, bad_rows=self.status.bad_rows + new)
            _log.warning("%d rows of sacct are kept aside; line %d: %s", new, bad[0].line, bad[0].reason)

    def _refresh_missing(self, cluster: str, seen: set[RunKey], first: int, now: int) -> None:
        """Look further back for runs that are open here and were not told: accounting may have ended them in the past.

        One look for each set of such runs, and not too often.
        """
        open_runs = self._store.open_runs(cluster)
        missing = frozenset(key for key in open_runs if key not in seen)
        due = self._wide_at_us is None or self._clock.mono_us() - self._wide_at_us >= WIDE_EVERY_S * 1e6
        if not missing or missing == self._missing or not due:
            return
        self._wide_at_us = self._clock.mono_us()
        earliest = min(open_runs[key] for key in missing)
        while earliest < first:
            self._window(earliest, min(earliest + WINDOW_S, first))
            earliest += WINDOW_S
        still = self._store.open_runs(cluster).keys()
        self._missing = frozenset(missing & still)
        if self._missing:
            _log.warning("%d runs are open here, but accounting tells them no more", len(self._missing))
        _log.debug("looked again for %d open runs until %d", len(missing), now)

    def _partitions(self) -> None:
        now_us = self._clock.mono_us()
        if self._partitions_at_us is not None and now_us - self._partitions_at_us < PARTITIONS_EVERY_S * 1e6:
            return
        partitions = self._slurm.partitions()
        self.defaults = SiteDefaults.of(partitions, self._slurm.config())
        self._store.set_partitions(self._site.cluster(), {p.name: p.name in self.defaults.whole for p in partitions})
        self._partitions_at_us = now_us

    def _failed(self, words: str) -> float:
        if words != self.status.error:
            _log.warning("accounting is not read, what is known stays: %s", words)
        failures = self.status.failures + 1
        self.status = replace(self.status, failures=failures, error=words)
        return min(BACKOFF_MAX_S, _BACKOFF_FIRST_S * 2.0 ** min(failures - 1, 10), self.settings.every_s * failures)
