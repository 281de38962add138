"""Periodic import of accounting into the hub's open store: one window at a time, with an overlap for late rows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from gpuwaste.core.units import DAY_S
from gpuwaste.jobs.importers.accounting_windows import windows
from gpuwaste.jobs.importers.history_source import SortedRows
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.slurm.accounting.job_record import AccountedRun, JobRecord
from gpuwaste.slurm.clients.client import SlurmClient
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.store.hub.hub_store import Aside, HubStore

CHUNK: Final = 2000  # runs written at a time
CHUNK_STEPS: Final = 20_000  # and steps, which limit the memory of a chunk where jobs have very many


@dataclass(frozen=True, slots=True)
class ImportSettings:
    """Seconds between imports, seconds that are read again each time, days that the first import reads."""

    every_s: float = 60.0
    overlap_s: float = 3600.0
    first_days: int = 30


class AccountingImport:
    """Imports the runs of one cluster; `read_until` is UTC seconds, None before anything was read.

    `learn` is called with the runs that were stored, `aside` with the bad rows of a window and the number of them
    that are new in quarantine.
    """

    def __init__(
        self,
        store: HubStore,
        slurm: SlurmClient,
        learn: Callable[[Sequence[JobRecord]], None],
        aside: Callable[[Sequence[Aside], int], None],
    ) -> None:
        self.read_until: int | None = None
        self._store = store
        self._slurm = slurm
        self._learn = learn
        self._aside = aside

    def read_new(self, cluster: str, now: int, settings: ImportSettings) -> tuple[int, set[RunKey]]:
        """Read from the mark, minus the overlap, to `now`; return where that began, and the runs that were read.

        The mark moves with each window. Raises GpuwasteError.
        """
        key = f"sacct:{cluster}"
        self.read_until = self._store.mark(key)
        back = settings.first_days * DAY_S if self.read_until is None else settings.overlap_s
        start = min(now, int((now if self.read_until is None else self.read_until) - back))
        told: set[RunKey] = set()
        for begin, end in tuple(windows(start, now)) or ((now, now),):
            told |= self.read(begin, end)
            self._store.set_mark(key, end)
            self.read_until = end
        return start, told

    def read(self, start: int, end: int) -> set[RunKey]:
        """Read the runs that overlap [start, end]; return their keys. Raises GpuwasteError, with some runs stored."""
        told: set[RunKey] = set()
        found, steps = SortedRows(), 0
        for row in self._slurm.accounting(start, end):
            found.add(row)
            steps += len(row.steps) if isinstance(row, AccountedRun) else 0
            if len(found.records) >= CHUNK or steps >= CHUNK_STEPS:
                steps = 0
                told |= self._write(found)
        told |= self._write(found)
        if found.bad:
            self._aside(found.bad, self._store.quarantine("sacct", found.bad))
        return told

    def _write(self, found: SortedRows) -> set[RunKey]:
        """Store the collected runs, and clear the collection."""
        runs, found.records = found.records, {}
        upsert_jobs(self._store, tuple(runs.values()))
        self._learn(tuple(runs.values()))
        return set(runs)
