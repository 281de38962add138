"""Raw pages of a running hub's store, read again for columns that an earlier version did not take from them.

Only details and steps are written, of runs that the store holds: what was known, judged and told stays as it is.
"""

from collections.abc import Mapping
from typing import Any, Final

from gpuwaste.jobs.importers.history_store import PAGE_VERSION, KeptPage, PageRow, kept_page
from gpuwaste.jobs.run_changes import take_details, take_steps
from gpuwaste.jobs.run_rows import JOB_COLUMNS
from gpuwaste.store.hub.hub_store import HubStore

_VERSION: Final[Mapping[str, Any]] = {"version": PAGE_VERSION}
_STEPS: Final = ("jobs_known", "jobs_stage_filled", "jobs_stage_keep", "jobs_changed_none", "jobs_detailed")


class PageDetails:
    """The pages that are due, each taken in one transaction with the note that it was."""

    def __init__(self, store: HubStore) -> None:
        self._store = store

    def due(self) -> list[KeptPage]:
        """Return the pages that are due, the newest first."""
        with self._store.reader() as db:
            return list(map(kept_page, db.rows("pages_due", _VERSION)))

    def take(self, kept: KeptPage, page: PageRow | None) -> int:
        """Write what a page gives, None for one that is gone; returns how many runs had new details."""
        with self._store.writing() as db:
            taken = []
            if page is not None and page.runs:
                db.run("jobs_stage_create")
                db.run("jobs_stage_file", {"file": str(page.rows), "columns": JOB_COLUMNS.types})
                for query in _STEPS:
                    db.run(query)
                take_steps(db, "steps_stage_file", page.step_file, only_known=True)
                taken = take_details(db)
            db.run("page_version", {**_VERSION, "import_id": kept.import_id, "number": kept.number}).fetchall()
        self._store.touched.note(taken)
        return len(taken)
