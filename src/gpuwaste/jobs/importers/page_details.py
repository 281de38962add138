"""PageReader: after an update, reads kept pages in the background for columns that the old version did not read.

Only details, steps and the use of GPUs of runs in the store are written: known values and sent events do not change.
Runs whose use is new are judged again.
"""

import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Self

from gpuwaste.core import log_event
from gpuwaste.core.clock import Clock
from gpuwaste.core.config import Config
from gpuwaste.core.errors import GpuwasteError
from gpuwaste.core.parts import Part, Parts
from gpuwaste.core.units import HOUR_S
from gpuwaste.core.worker import Worker
from gpuwaste.jobs.host_ports import HostPorts
from gpuwaste.jobs.importers.bulk_import import read_again
from gpuwaste.jobs.importers.history_store import PAGE_VERSION, KeptPage, PageRow, kept_page
from gpuwaste.jobs.importers.page_files import PageFiles
from gpuwaste.jobs.run_changes import JOB_COLUMNS, take_details, take_steps, take_uses
from gpuwaste.store.hub.hub_store import STORE_NAME, HubStore

_VERSION: Final[Mapping[str, Any]] = {"version": PAGE_VERSION}
_STEPS: Final = ("jobs_known", "jobs_stage_filled", "jobs_stage_keep", "jobs_changed_none", "jobs_detailed")
_TELL_S: Final = 60.0
_PROGRESS: Final = log_event.info("pages-read: {percent:.0f} % of {pages} raw pages read again for new columns")
_DONE: Final = log_event.info("pages-done: {pages} raw pages read again, new columns of {runs} runs")
_FAILED: Final = log_event.warning(
    "pages-failed: {pages} raw pages cannot be read again, the new columns of their runs are unknown: {error}",
    "A raw page is damaged, or the disk is full. The hub tries again in an hour; to have the columns, "
    "import that source again.",
)


class PageDetails:
    """The pages that are due, each stored in one transaction with the note that it was."""

    def __init__(self, store: HubStore) -> None:
        self._store = store

    def due(self) -> list[KeptPage]:
        """Return the pages that are due, the newest first."""
        with self._store.reader() as db:
            return list(map(kept_page, db.rows("pages_due", _VERSION)))

    def take(self, kept: KeptPage, page: PageRow | None) -> int:
        """Write the details of a page, None for one that is gone; return how many runs had new details."""
        with self._store.writing() as db:
            taken = []
            if page is not None and page.runs:
                db.run("jobs_stage_create")
                db.run("jobs_stage_file", {"file": str(page.rows), "columns": JOB_COLUMNS.types})
                for query in _STEPS:
                    db.run(query)
                take_steps(db, "steps_stage_file", page.step_file, only_known=True)
                uses = take_uses(db, "uses_stage_file", page.use_file, self._store.now(), only_known=True)
                if uses.runs:
                    self._store.note_changes(((r.cluster, r.job_id, r.start) for r in uses.runs), uses.first_end)
                taken = take_details(db)
            db.run("page_version", {**_VERSION, "import_id": kept.import_id, "number": kept.number}).fetchall()
        self._store.touched.note(taken)
        return len(taken)


class PageReader(Part):
    """`worker` runs it, and ends when nothing is due; a hub that is killed continues with the next page."""

    late = True

    def __init__(self, store: HubStore, path: Path, clock: Clock) -> None:
        self._pages = PageDetails(store)
        self._files = PageFiles(path)
        self._path = path
        self._clock = clock
        self._told_us = 0
        self.worker = Worker("pages", self._turn, clock)

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of a hub."""
        path = Path(parts.get(Config).hub.state_dir) / STORE_NAME
        return cls(parts.get(HubStore), path, parts.get(HostPorts).clock)

    def _turn(self) -> float | None:
        return HOUR_S if self.step(self.worker.stopping) else None

    def step(self, stop: threading.Event) -> int:
        """Read the due pages, until `stop`; return how many pages are left. Raises nothing that the store can cause."""
        failed, problem, runs = 0, "", 0
        try:
            due = self._pages.due()
            if due:
                self._files.prepare()
        except GpuwasteError as error:
            _FAILED.log(pages="all", error=error)
            return 1
        for done, kept in enumerate(due):
            self._tell(100 * done / len(due), len(due))
            began = time.monotonic()
            try:
                runs += self._read(kept)
            except GpuwasteError as error:
                failed, problem = failed + 1, problem or str(error)
            # Half of the time is left to other work on the processors.
            if stop.is_set() or self._clock.wait(stop, time.monotonic() - began):
                return len(due) - done - 1 + failed
        if failed:
            _FAILED.log(pages=failed, error=problem)
        if len(due) > failed:
            _DONE.log(pages=len(due) - failed, runs=runs)
        return failed

    def _read(self, kept: KeptPage) -> int:
        if not self._files.has(kept.digest):
            return self._pages.take(kept, None)
        page = read_again(self._files, self._path, kept)
        try:
            return self._pages.take(kept, page)
        finally:
            page.discard()

    def _tell(self, percent: float, pages: int) -> None:
        if self._clock.mono_us() - self._told_us >= _TELL_S * 1e6:
            self._told_us = self._clock.mono_us()
            _PROGRESS.log(percent=percent, pages=pages)
