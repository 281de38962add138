"""RightSizes: draws the findings about the size of requests from the last runs, at intervals, and stores them."""

import json
from collections.abc import Iterable
from typing import Final, Self

from gpuwaste.core import log_event
from gpuwaste.core.clock import Clock
from gpuwaste.core.errors import GpuwasteError
from gpuwaste.core.parts import Part, Parts
from gpuwaste.core.typed import convert
from gpuwaste.core.units import HOUR_S
from gpuwaste.core.worker import Bus, Worker
from gpuwaste.jobs.host_ports import HostPorts
from gpuwaste.ledger.finding import DIRECTIVE
from gpuwaste.ledger.judging import Judging
from gpuwaste.ledger.ledger import LedgerSettings
from gpuwaste.ledger.right_size.reads import read_jobs
from gpuwaste.ledger.right_size.size_types import MAX_ROWS, RightSize, SizeRow, SizeTableAnswer
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.store.hub.json_rows import to_json

EVERY_S: Final = 6.0 * HOUR_S
AFTER_FAILURE_S: Final = 600.0
_ORDER: Final = (
    "gpu_larger_than_needed",
    "memory_more_than_needed",
    "time_limit_longer_than_needed",
    "cpus_more_than_needed",
)
"""The findings in the order in which sbatch prints them."""
_FAILED: Final = log_event.warning(
    "right-sizes-failed: cannot compare requests with past runs, retry later: {error}",
    "The store or its disk has an error. Reports keep the findings about the size of requests of the last pass.",
)


class RightSizes(Part):
    """Replaces the stored findings; `worker` runs it."""

    late = True

    def __init__(self, store: HubStore, settings: LedgerSettings, clock: Clock) -> None:
        self._store = store
        self._settings = settings
        self._clock = clock
        self.worker = Worker("right sizes", self._turn, clock)

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of a hub."""
        part = cls(parts.get(HubStore), parts.get(Judging).standing, parts.get(HostPorts).clock)
        parts.get(Bus).subscribe(LedgerSettings, lambda settings: setattr(part, "_settings", settings))
        return part

    def step(self) -> int:
        """Draw and store the findings; returns how many. Raises StoreError."""
        with self._store.reader() as db:
            rows = read_jobs(db, self._settings, self._clock.utc_s()).rows()
        with self._store.writing() as db:
            db.run("right_sizes_clear").fetchall()
            if rows:
                db.run("right_sizes_add", {"rows": to_json(rows)}).fetchall()
        return len(rows)

    def of_user(self, user: str) -> list[RightSize]:
        """Return the stored findings of a user's jobs. Raises StoreError."""
        with self._store.reader() as db:
            rows = db.rows("right_sizes_of_user", {"user": user})
        return convert([{**row, "finding": json.loads(row["finding"])} for row in rows], list[RightSize])

    def table(self) -> SizeTableAnswer:
        """Return the smaller requests of all users that an option of sbatch makes. Raises StoreError."""
        with self._store.reader() as db:
            rows = db.rows("right_sizes_told", {"most": MAX_ROWS})
        found = [(row, json.loads(row.pop("finding"))) for row in rows]
        found.sort(key=lambda each: _ORDER.index(each[1]["kind"]))
        told = [
            SizeRow(**row, option=_options(finding["fix"]), runs=len(finding["runs"]))
            for row, finding in found
            if finding["fix"]
        ]
        return SizeTableAnswer(rows=told)

    def _turn(self) -> float:
        try:
            self.step()
        except GpuwasteError as error:
            _FAILED.log(error=error)
            return AFTER_FAILURE_S
        return EVERY_S


def _options(lines: Iterable[str]) -> str:
    """Return #SBATCH lines as options of a command line."""
    return " ".join(line.removeprefix(DIRECTIVE) for line in lines)
