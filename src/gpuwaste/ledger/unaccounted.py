"""Hours of runs that accounting does not have: accepted for a while, since accounting may be late, and limited.

A node may report runs before accounting has them, for days while slurmdbd is down. What a node can store this way is
limited by age, by a quota per node, and by a prune once accounting has been read for long enough. A row that can never
become right is rejected by line, so that its agent keeps it with the reason; a full quota rejects the batch for now,
and nothing of it is lost.
"""

import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final, Self, TypeVar

from gpuwaste.core import log_event
from gpuwaste.core.clock import Clock
from gpuwaste.core.config import Config
from gpuwaste.core.errors import ParseError
from gpuwaste.core.parts import Part, Parts, Reloads
from gpuwaste.core.refusal import LATER, Refusal
from gpuwaste.core.units import DAY_S
from gpuwaste.core.worker import Bus
from gpuwaste.jobs.host_ports import HostPorts
from gpuwaste.jobs.importers.accounting_importer import Imported
from gpuwaste.ledger.hour import AllocationHour
from gpuwaste.slurm.formats.hostlist import expand
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.store.hub.json_rows import to_json

MOST_ROWS: Final = 50_000  # per node: eight GPUs with a job a minute each for four days without slurmdbd
MOST_GPUS: Final = 1024  # ids per node: 16 GPUs with every placement of their MIG instances
MOST_NODES: Final = 16_384
EVERY_S: Final = 6 * 3600.0
_SETTLED_S: Final = DAY_S  # so long after a run's end accounting no longer changes it
_COUNT_EVERY_S: Final = 60.0  # a full quota is counted again
_RETRY_AFTER_S: Final = 300
_REMOVED: Final = log_event.warning(
    "unaccounted-hours-removed: deleted {rows} rows of hours: their runs are not in accounting after {days} days",
    "Accounting lost the jobs, or a node invented the rows. `[hub] unaccounted_days` is their retention.",
)
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class KnownRun:
    """A run in accounting: its end in UTC seconds, None while it runs; `here`: whether it was on the requested node."""

    end: int | None
    here: bool


class UnaccountedStore:
    """Queries and prunes one hub's store. Thread-safe."""

    def __init__(self, store: HubStore) -> None:
        self._store = store

    def known(self, runs: Collection[RunKey], node: str) -> dict[RunKey, KnownRun]:
        """Return the runs that accounting has, and whether they were on the node."""
        rows = [{"cluster": run.cluster, "job_id": run.job_id, "run_start": run.start} for run in runs]
        with self._store.reader() as db:
            return {
                RunKey(row["cluster"], row["job_id"], row["run_start"]): KnownRun(
                    row["end"], _names(row["nodes"], node)
                )
                for row in db.rows("runs_known", {"runs": to_json(rows)})
            }

    def hours_of(self, node: str) -> int:
        """Return how many hours the node has sent of runs that accounting does not have there."""
        with self._store.reader() as db:
            rows = db.rows("hours_of_node", {"node": node})
        return sum(row["hours"] for row in rows if row["nodes"] is None or not _names(row["nodes"], node))

    def prune(self, before: int) -> int:
        """Remove hours before a UTC second whose runs accounting does not have; returns how many."""
        with self._store.writing() as db:
            return int(db.run("hours_prune", {"before": before}).fetchall()[0][0])


def _names(nodes: str, node: str) -> bool:
    try:
        return node in expand(nodes)
    except ParseError:
        return False


class Unaccounted(Part):
    """Rejects and prunes such hours; `rejected` is for any thread, `step` for one. With `days` 0 nothing is limited."""

    def __init__(self, store: UnaccountedStore, clock: Clock, days: int, most_rows: int = MOST_ROWS) -> None:
        self.days = days
        self._store = store
        self._clock = clock
        self.most_rows = most_rows
        self._lock = threading.Lock()
        self._rows: dict[str, int] = {}  # by node: the last count, and the rows accepted since
        self._full_until_us: dict[str, int] = {}
        self._gpus: dict[str, set[str]] = {}
        self._next_us = 0

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of a hub."""
        store = UnaccountedStore(parts.get(HubStore))
        part = cls(store, parts.get(HostPorts).clock, parts.get(Config).hub.unaccounted_days)
        parts.get(Bus).subscribe(Imported, lambda event: part.step(event.read_until))
        return part

    @property
    def reloads(self) -> Reloads:
        """How long hours of runs missing in accounting are kept."""
        return {("hub.unaccounted_days",): lambda c: setattr(self, "days", c.hub.unaccounted_days)}

    def rejected(self, node: str, rows: Mapping[int, AllocationHour]) -> dict[int, str]:
        """Return the reason by line for rows that can never be right. Raises Refusal where the node must wait."""
        if self.days <= 0 or not rows:
            return {}
        known = self._store.known({row.run_key for row in rows.values()}, node)
        now = self._clock.utc_s()
        rejected: dict[int, str] = {}
        unsure = 0
        for line, row in rows.items():
            run = known.get(row.run_key)
            reason = self._unknown(row, now) if run is None else _contradicted(row, run, now)
            if not reason and not self._is_gpu_of(node, row.gpu_uuid):
                reason = f"{node} has named more than {MOST_GPUS} GPUs since the hub's start"
            if reason:
                rejected[line] = reason
            elif run is None or not run.here:
                unsure += 1
        if unsure:
            self._count(node, unsure)
        return rejected

    def step(self, read_until: int | None) -> None:
        """Remove old hours that accounting, read up to `read_until` (UTC seconds), does not have. Raises StoreError."""
        if self.days <= 0 or read_until is None or self._clock.mono_us() < self._next_us:
            return
        now = self._clock.utc_s()
        removed = self._store.prune(min(now, read_until) - self.days * DAY_S)
        if removed:
            _REMOVED.log(rows=removed, days=self.days)
        self._next_us = self._clock.mono_us() + int(EVERY_S * 1e6)

    def _unknown(self, row: AllocationHour, now: int) -> str:
        if row.hour_utc >= now - self.days * DAY_S:
            return ""
        return (
            f"hour {row.hour_utc} is older than {self.days} days, and accounting has no run {row.run_key}:"
            " see [hub] unaccounted_days"
        )

    def _is_gpu_of(self, node: str, uuid: str) -> bool:
        with self._lock:
            gpus = _newest(self._gpus, node, set[str]())
            if len(gpus) < MOST_GPUS:
                gpus.add(uuid)
            return uuid in gpus

    def _count(self, node: str, rows: int) -> None:
        """Add rows to the node's quota. Raises Refusal where it is full; a full quota is counted again at intervals."""
        now_us = self._clock.mono_us()
        with self._lock:
            taken = _newest(self._rows, node, 0) + rows
            full = taken > self.most_rows
            if not full:
                self._rows[node] = taken
                return
            counts = now_us >= self._full_until_us.get(node, 0)
            if counts:
                _newest(self._full_until_us, node, 0)
                self._full_until_us[node] = now_us + int(_COUNT_EVERY_S * 1e6)
        if counts:
            there = self._store.hours_of(node)
            full = there + rows > self.most_rows
            with self._lock:
                self._rows[node] = there if full else there + rows
        if full:
            raise Refusal(
                LATER,
                f"{node} has sent {self.most_rows} hour rows of runs that are missing in accounting: check slurmdbd",
                retry_after=_RETRY_AFTER_S,
            )


def _contradicted(row: AllocationHour, run: KnownRun, now: int) -> str:
    """Return why a row contradicts the settled run in accounting, "" where it does not."""
    if run.end is None or run.end > now - _SETTLED_S:
        return ""
    if row.hour_utc > run.end + _SETTLED_S:
        return f"hour {row.hour_utc} is more than a day after the end of {row.run_key}, {run.end}"
    return "" if run.here else f"accounting has {row.run_key} on other nodes"


def _newest(table: dict[str, _T], node: str, default: _T) -> _T:
    """Return the node's entry and make it the newest; drop the oldest where there are too many nodes."""
    found = table.pop(node, default)
    table[node] = found
    if len(table) > MOST_NODES:
        del table[next(iter(table))]
    return found
