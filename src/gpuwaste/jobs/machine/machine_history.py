"""MachineHistory: records the machine's nodes, outages, reservations and what runs hold on each node, in the hub."""

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, Self, TypeVar

from gpuwaste.core import log_event
from gpuwaste.core.clock import Clock
from gpuwaste.core.errors import GpuwasteError, ParseError, SlurmError
from gpuwaste.core.parts import Part, Parts
from gpuwaste.core.repeat_suppressor import EventLog
from gpuwaste.core.units import DAY_S
from gpuwaste.core.worker import Bus, Worker
from gpuwaste.jobs.cluster_facts import ClusterFacts
from gpuwaste.jobs.gpu_assignments import JobsSeen
from gpuwaste.jobs.host_ports import HostPorts
from gpuwaste.jobs.machine import machine_store as machine
from gpuwaste.jobs.machine.present_state import outages_now, reservations_now
from gpuwaste.slurm.clients.client import SlurmClient
from gpuwaste.slurm.clients.slurmctld_jobs import RunningJob
from gpuwaste.slurm.site.cluster_model import NEVER, Node
from gpuwaste.slurm.site.machine_events import PrintedRows, ReservedNodes, of_entire_nodes
from gpuwaste.store.database import Database
from gpuwaste.store.hub.hub_store import HubStore

_Row = TypeVar("_Row")
_Shown = TypeVar("_Shown")
PAST_EVERY_S: Final = 300.0
TURN_S: Final = 60.0
_OVERLAP_S: Final = DAY_S  # slurmctld sends slurmdbd what happened while it was away
_MAX_WAITING: Final = 200_000  # rows of runs that are not stored yet, and runs that are known to be
_HOLDING: Final = frozenset({"RUNNING", "SUSPENDED"})
_UNREAD: Final = log_event.warning(
    "machine-unread: cannot read {about}: {error}",
    "slurmdbd or slurmctld did not answer, or this site has no slurmdbd. Without slurmdbd, outages and reservations are"
    " those that slurmctld has when the hub reads them, every 5 minutes.",
)
_BAD_ROWS: Final = log_event.warning(
    "machine-rows-unread: {rows} rows of {about} left out: {error}",
    "These rows of sacctmgr or scontrol cannot be read, or there were too many. Nodes count as up in the times of"
    " these rows.",
)


class MachineHistory(Part):
    """Reads what slurmdbd has of the machine every 5 minutes; nodes and runs come from what the hub reads anyway."""

    late = True

    def __init__(self, store: HubStore, slurm: SlurmClient, site: ClusterFacts, clock: Clock) -> None:
        self._store = store
        self._slurm = slurm
        self._site = site
        self._clock = clock
        self._log = EventLog(clock, DAY_S)
        self._lock = threading.Lock()
        self._held: list[dict[str, Any]] = []
        self._seen: set[tuple[int, int]] = set()
        self._past_us: int | None = None
        self._nodes_read: int | None = None
        self._first_read: dict[str, int] = {}  # from when on each kind was read
        self._outages = _Past(
            "machine_events",
            "node events",
            slurm.outages,
            self._present_nodes,
            outages_now,
            machine.stored_outages,
            machine.replace_outages,
            lambda one: one.start,
        )
        self._reservations = _Past(
            "machine_reservations",
            "reservations",
            lambda since: self._reserved(slurm.reservations(since)),
            lambda: self._reserved(slurm.reservations()).rows,
            reservations_now,
            machine.stored_reservations,
            machine.replace_reservations,
            lambda one: one.start,
        )
        self.worker = Worker("machine", self._turn, clock, last=self._turn)

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of a hub."""
        ports = parts.get(HostPorts)
        part = cls(parts.get(HubStore), ports.slurm, parts.get(ClusterFacts), ports.clock)
        parts.get(Bus).subscribe(JobsSeen, lambda event: part.see(event.jobs))
        return part

    def see(self, jobs: Iterable[RunningJob]) -> None:
        """Take what running jobs hold on each node, for the next turn; from any thread."""
        new = [job for job in jobs if job.state in _HOLDING and job.start is not None]
        with self._lock:
            if len(self._seen) > _MAX_WAITING:
                self._seen.clear()
            for job in new:
                key = job.job_id, job.start or 0
                if key not in self._seen and len(self._held) < _MAX_WAITING:
                    self._seen.add(key)
                    self._held += machine.held_rows(job)

    def _turn(self) -> float:
        try:
            self.step()
            self._log.over("the machine")
        except GpuwasteError as error:
            self._log.trouble(_UNREAD, "the machine", error=error)
        return TURN_S

    def step(self) -> None:
        """Store what is new. Raises UnknownSiteError and StoreError."""
        cluster = self._site.cluster()
        self._store_held(cluster)
        due = self._past_us is None or self._clock.mono_us() - self._past_us >= PAST_EVERY_S * 1e6
        if due and not self.worker.stopping.is_set():
            self._past_us = self._clock.mono_us()
            self._site.refresh()
            self._read(cluster, self._outages)
            self._read(cluster, self._reservations)
        self._store_nodes(cluster)

    def _store_held(self, cluster: str) -> None:
        with self._lock:
            rows, self._held = self._held, []
        if rows:
            with self._store.writing() as db:
                machine.add_held(db, cluster, rows)

    def _store_nodes(self, cluster: str) -> None:
        nodes, at = self._site.nodes, self._site.nodes_read
        if at is not None and at != self._nodes_read:
            with self._store.writing() as db:
                machine.write_nodes(db, cluster, nodes, at)
            self._nodes_read = at

    def _read(self, cluster: str, which: "_Past[_Row, _Shown]") -> None:
        """Store what slurmdbd has; while it does not answer, what slurmctld has now."""
        now, since = self._clock.utc_s(), self._since(cluster, which.kind)
        try:
            found = which.past(since)
        except (SlurmError, ParseError) as error:
            self._log.trouble(_UNREAD, which.about, error=error)
            self._read_present(cluster, which, now)
            return
        self._log.over(which.about)
        if found.bad or found.cut:
            why = found.error or "more rows than are read at once"
            self._log.trouble(_BAD_ROWS, f"{which.about} of slurmdbd", rows=found.bad or "older", error=why)
        if found.cut:
            since = max(since, min(which.start(row) for row in found.rows))
        with self._store.writing() as db:
            which.replace(db, cluster, found.rows, since)
            machine.set_complete(db, which.kind, cluster, since, now)

    def _read_present(self, cluster: str, which: "_Past[_Row, _Shown]", now: int) -> None:
        try:
            shown = which.shown()
        except (SlurmError, ParseError) as error:
            self._log.trouble(_UNREAD, f"present {which.about}", error=error)
            return
        self._log.over(f"present {which.about}")
        with self._store.writing() as db:
            old = which.stored(db, cluster, now - 1, NEVER)
            which.replace(db, cluster, which.merged(old, shown, now), now - 1)
            if machine.mark(db, which.kind, cluster) is None:
                machine.set_mark(db, which.kind, cluster, now)

    def _since(self, cluster: str, kind: machine.Kind) -> int:
        """Return from when on to read: from the first run on, or a day before the last read.

        A history that is imported later has earlier runs: all is read again, once.
        """
        now = self._clock.utc_s()
        with self._store.reader() as db:
            first = db.rows("machine_first_run", {"cluster": cluster})[0]["first"] or now
            known, until = machine.mark(db, kind, cluster), machine.mark(db, f"{kind}_until", cluster)
        if known is None or until is None or (first < known and first != self._first_read.get(kind)):
            self._first_read[kind] = first
            return min(first, now - _OVERLAP_S)
        return min(until, now) - _OVERLAP_S

    def _present_nodes(self) -> tuple[Node, ...]:
        at = self._site.nodes_read
        if at is None or self._clock.utc_s() - at > 2 * PAST_EVERY_S:
            raise SlurmError("slurmctld did not answer")
        return self._site.nodes

    def _reserved(self, found: PrintedRows[ReservedNodes]) -> PrintedRows[ReservedNodes]:
        return of_entire_nodes(found, {node.name: node.cpus for node in self._site.nodes})


@dataclass(frozen=True, slots=True)
class _Past(Generic[_Row, _Shown]):
    """How one kind of rows is read from slurmdbd, or merged from what slurmctld has, and stored."""

    kind: machine.Kind
    about: str
    past: Callable[[int], PrintedRows[_Row]]
    shown: Callable[[], Sequence[_Shown]]
    merged: Callable[[Sequence[_Row], Sequence[_Shown], int], Sequence[_Row]]
    stored: Callable[[Database, str, int, int], Sequence[_Row]]
    replace: Callable[[Database, str, Sequence[_Row], int], bool]
    start: Callable[[_Row], int]
