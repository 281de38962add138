"""RightSizes: draws the findings about the size of requests from the last runs, at intervals, and stores them."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Self

from gpuwaste.core import log_event
from gpuwaste.core.clock import Clock
from gpuwaste.core.errors import GpuwasteError
from gpuwaste.core.parts import Part, Parts
from gpuwaste.core.typed import convert
from gpuwaste.core.units import DAY_S, HOUR_S
from gpuwaste.core.worker import Bus, Worker
from gpuwaste.jobs.host_ports import HostPorts
from gpuwaste.ledger.finding import DIRECTIVE
from gpuwaste.ledger.judging import Judging
from gpuwaste.ledger.ledger import LedgerSettings
from gpuwaste.ledger.right_size.reads import SizeReader, size_rows
from gpuwaste.ledger.right_size.size_types import MAX_ROWS, RightSize, SizeRow, SizeTableAnswer
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.store.hub.json_rows import to_json

if TYPE_CHECKING:
    from gpuwaste.ledger.right_size.such_jobs import SizedSite

EVERY_S: Final = 6.0 * HOUR_S
FULL_EVERY_S: Final = DAY_S  # waits and growths of the site change the findings of all users
LATE_S: Final = 2 * HOUR_S  # accounting and hours of a run that has ended may come later
AFTER_FAILURE_S: Final = 600.0
_ORDER: Final = (
    "gpu_larger_than_needed",
    "memory_more_than_needed",
    "time_limit_longer_than_needed",
    "cpus_more_than_needed",
)
"""The findings in the order in which sbatch prints them."""
_AMOUNTS: Final = {"time_limit_s": "enough_s", "mem_b": "enough_b", "cpus": "enough_cpus"}
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
        self._sites: dict[str, SizedSite] = {}  # of the last pass over all users
        self._full_at = self._last_at = 0  # when the last pass over all users, and the last one, began
        self.worker = Worker("right sizes", self._turn, clock)

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of a hub."""
        part = cls(parts.get(HubStore), parts.get(Judging).standing, parts.get(HostPorts).clock)
        parts.get(Bus).subscribe(LedgerSettings, part._use)
        return part

    def step(self) -> int:
        """Draw and store the findings of users with a run since the last pass, once a day of all; returns how many.

        Raises StoreError.
        """
        now, found = self._clock.utc_s(), 0
        full = now - self._full_at >= FULL_EVERY_S
        with self._store.reader() as db:
            reader = SizeReader(db, self._settings, now)
            for users in reader.clusters(0 if full else self._last_at - LATE_S):
                if full or users.cluster not in self._sites:
                    self._sites[users.cluster] = reader.site(users)
                for batch in users.batches:
                    rows = size_rows(reader.jobs(users.cluster, batch), self._sites[users.cluster])
                    self._replace(users.cluster, batch, rows)
                    found += len(rows)
        with self._store.writing() as db:
            db.run("right_sizes_forget", {"from_s": reader.since}).fetchall()
        self._last_at = now
        if full:
            self._full_at = now
        return found

    def _replace(self, cluster: str, users: Sequence[str], rows: list[dict[str, Any]]) -> None:
        with self._store.writing() as db:
            db.run("right_sizes_clear", {"cluster": cluster, "users": list(users)}).fetchall()
            if rows:
                db.run("right_sizes_add", {"rows": to_json(rows)}).fetchall()

    def _use(self, settings: LedgerSettings) -> None:
        self._settings, self._full_at = settings, 0

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
            SizeRow(**row, option=option, runs=len(finding["runs"]), **_amounts(finding["evidence"]))
            for row, finding in found
            if (option := _option(finding))
        ]
        return SizeTableAnswer(rows=told)

    def _turn(self) -> float:
        try:
            self.step()
        except GpuwasteError as error:
            _FAILED.log(error=error)
            return AFTER_FAILURE_S
        return EVERY_S


def _option(finding: dict[str, Any]) -> str:
    """Return the first fix as options of a command line; none in another partition, whose limits nobody checks here."""
    for fix in finding["fixes"]:
        words = [line.removeprefix(DIRECTIVE) for line in fix["lines"]]
        if words and not any(word.startswith("--partition") for word in words):
            return " ".join(words)
    return ""


def _amounts(evidence: dict[str, Any]) -> dict[str, Any]:
    return {name: evidence[key] for name, key in _AMOUNTS.items() if key in evidence}
