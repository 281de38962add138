"""A hub's parts that answer about idleness, fed with what a drawn cluster sends, at any second of it."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final, cast

from tests.unit.ledger.idleness.idle_agents import deliveries
from tests.unit.ledger.idleness.idle_world import BEGIN, MIN_JOB_AGE_S, World, WorldRun, within

from gpuwaste.core.refusal import Refusal
from gpuwaste.core.scope import Scope
from gpuwaste.jobs.cluster_facts import ClusterFacts
from gpuwaste.jobs.importers.accounting import ImportSettings
from gpuwaste.jobs.importers.accounting_importer import Importer, ImportStatus
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.ledger.hour import AllocationHour
from gpuwaste.ledger.hour_store import upsert_hours
from gpuwaste.ledger.idleness.accounting_backlog import AccountingBacklog
from gpuwaste.ledger.idleness.agent_clocks import AgentClocks
from gpuwaste.ledger.idleness.idleness_reads import IdlenessReads, IdleQuestion
from gpuwaste.ledger.idleness.idleness_types import IdlenessDocument
from gpuwaste.ledger.idleness.run_proofs import RunProof
from gpuwaste.ledger.idleness.slurm_jobs import SlurmJobs
from gpuwaste.ledger.ledger import LedgerSettings
from gpuwaste.ledger.reports.document_queries import DocumentQueries
from gpuwaste.ledger.run_keeps import RunKeeps
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.clients.slurmctld_jobs import RunningJob
from gpuwaste.slurm.formats.gpu_positions import GresOnNode
from gpuwaste.slurm.formats.hostlist import compressed
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.slurm.site.cluster_model import Node
from gpuwaste.store.database import Database
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.testing.clocks import FakeClock
from gpuwaste.testing.fake_slurm import FakeSlurm

OPERATOR: Final = Scope("oper", everything=True)
IMPORT_S: Final = 60


class SharedIdlenessReads(IdlenessReads):
    """Reads the proofs of all open runs once for the answers of one instant: one query costs as much for many runs."""

    _shared: tuple[int, dict[RunKey, RunProof]] = (0, {})

    def proofs(self, db: Database, runs: Collection[RunKey], now: int) -> list[RunProof]:
        """Return those of these runs."""
        if self._shared[0] != now:
            every = [
                RunKey("gw", *row)
                for row in db.execute('SELECT job_id, run_start FROM jobs WHERE "end" IS NULL').fetchall()
            ]
            self._shared = now, {proof.run.job.run_key: proof for proof in super().proofs(db, every, now)}
        found = self._shared[1]
        return [found[run] for run in runs if run in found]


@dataclass
class _ImportedUntil:
    """What the answers ask of the importer."""

    settings: ImportSettings
    status: ImportStatus


class IdleHub:
    """Goes through a world once, forwards."""

    def __init__(self, world: World, *, shared: bool = True) -> None:
        self._world = world
        self._reads_of = SharedIdlenessReads if shared else IdlenessReads
        self.clock = FakeClock(0)
        self._slurm = FakeSlurm(
            settings={"MinJobAge": f"{MIN_JOB_AGE_S} sec"},
            node_list=[Node(node.name, address="10.0.0.1", gpus={"a100": len(node.uuids)}) for node in world.nodes],
        )
        self._deliveries = deliveries(world, [(at, at + 20) for at in world.restarts])
        self._given = 0
        self._events = sorted([(at, None) for at in world.restarts] + list(world.restores), key=lambda one: one[0])
        self._importer = _ImportedUntil(ImportSettings(every_s=IMPORT_S), ImportStatus())
        self._store: HubStore | None = None
        self._open()

    def _open(self) -> None:
        """Start the hub, with the store that it has."""
        if self._store is None:
            self._store = _new_store(self.clock)
        self.clocks = AgentClocks(self.clock)
        self.backlog = AccountingBacklog(self._slurm, self.clock)
        self._importer.status = ImportStatus()
        site = ClusterFacts(self._slurm, self.clock, "gw", lambda _: frozenset())
        self.reads = self._reads_of(
            self._store,
            DocumentQueries(self._store, LedgerSettings(), self.clock),
            site,
            cast("Importer", self._importer),
            slurm_jobs=SlurmJobs(self._slurm, self.clock),
            clocks=self.clocks,
            kept=RunKeeps(),
            backlog=self.backlog,
            settings=LedgerSettings(),
            clock=self.clock,
            idle_after_s=1800,
        )

    @property
    def store(self) -> HubStore:
        """The store."""
        assert self._store is not None
        return self._store

    def close(self) -> None:
        """End it."""
        self.store.close()

    def go_to(self, at: int) -> None:
        """Let the world go on to a true second."""
        while self._events and self._events[0][0] <= at:
            when, back_to = self._events.pop(0)
            self._take(when)
            if back_to is not None:
                self._restore(back_to)
            self._set(when)
            self._open()
        self._take(at)
        self._import(at)
        self._set(at)
        self._slurm.running = [one for run in self._world.runs for one in _in_slurmctld(run, at)]
        self._slurm.failure = "slurmctld does not answer" if within(self._world.slurmctld_down, at) else ""

    def ask(self, about: str, name: str, for_s: int, max_age_s: int | None = None) -> IdlenessDocument | None:
        """Return an answer; None where there is none."""
        question = IdleQuestion(name=name, for_s=for_s, max_age_s=max_age_s)
        try:
            return (self.reads.job if about == "job" else self.reads.node)(OPERATOR, question)
        except Refusal:
            return None

    def _set(self, at: float) -> None:
        self.clock.now_us = round((at + self._world.hub_ahead) * 1e6)
        self.clock.steady_us = at * 1_000_000 if isinstance(at, int) else round(at * 1e6)

    def _take(self, until: int) -> None:
        """Receive the batches up to a second, and commit them together, as a busy hub does."""
        rows = list[AllocationHour]()
        while self._given < len(self._deliveries) and self._deliveries[self._given].at <= until:
            one = self._deliveries[self._given]
            self._set(one.at)
            self.clocks.note(one.node, one.sent_us, self.clock.utc_us())
            rows += one.rows
            self._given += 1
        upsert_hours(self.store, rows)

    def _restore(self, back_to: int) -> None:
        """Put an older copy of the store in its place."""
        self.store.close()
        self._store = _new_store(self.clock)
        upsert_hours(self.store, [row for one in self._deliveries if one.at <= back_to for row in one.rows])
        upsert_jobs(self.store, self._accounted(back_to))

    def _import(self, at: int) -> None:
        """Import accounting as the hub last could before this second."""
        last = BEGIN + (at - BEGIN) // IMPORT_S * IMPORT_S
        while last > BEGIN and within(self._world.sacct_down, last):
            last -= IMPORT_S
        if self._events_since(last, at):
            return
        self._look_at_queue(last - IMPORT_S)
        self._set(last)
        upsert_jobs(self.store, self._accounted(last - self._world.slurmdbd_lag_s))
        self._importer.status = ImportStatus(read_until=self.clock.utc_s())

    def _look_at_queue(self, at: int) -> None:
        """Look at slurmctld's queue to slurmdbd as the hub did after the import before the last one."""
        if within(self._world.sacct_down, at) or self._events_since(at, at + IMPORT_S):
            return
        self._set(at)
        behind = (at - self._world.slurmdbd_lag_s, at)
        times = [when for run in self._world.runs for when in (run.submit, run.start, run.end) if when is not None]
        self._slurm.backlog = sum(behind[0] < when <= behind[1] for when in times)
        self._slurm.failure = "slurmctld does not answer" if within(self._world.slurmctld_down, at) else ""
        self.backlog.want()
        self.backlog.look()

    def _events_since(self, last: int, at: int) -> bool:
        """Return whether the hub was started since: it has not read accounting then."""
        starts = [*self._world.restarts, *(when for when, _ in self._world.restores)]
        return any(last < when <= at for when in starts)

    def _accounted(self, at: int) -> list[JobRecord]:
        """Return accounting's runs as of a second."""
        return [record for run in self._world.runs if run.submit <= at for record in [_accounted(run, at)]]


def _new_store(clock: FakeClock) -> HubStore:
    """Return an empty store; one thread is the fastest for so few rows."""
    store = HubStore.open(":memory:", clock)
    with store.writing() as db:
        db.execute("SET threads = 1")
    return store


def _accounted(run: WorldRun, at: int) -> JobRecord:
    started = run.start <= at
    ended = run.end is not None and run.end <= at
    state = "RUNNING" if started else "PENDING"
    if ended:
        state = "REQUEUED" if run.requeued else "COMPLETED"
    elif started and within(run.suspended, at):
        state = "SUSPENDED"
    number = len(run.uuids) if run.kind in {"gpu", "mig"} else 0
    tres = {"gpu": f"gres/gpu={number}", "mig": f"gres/gpu={number}", "shard": "gres/shard=1", "cpu": "cpu=4"}[run.kind]
    values: dict[str, Any] = {
        "cluster": "gw", "job_id": run.job_id, "submit": run.submit, "printed_id": run.printed_id, "user": "alice",
        "account": "a", "partition": "gpu", "state": state, "array_job_id": run.array_job_id,
        "array_task_id": run.array_task_id, "het_job_id": run.het_job_id, "het_offset": run.het_offset,
        "time_limit_s": 86_400 * 2,
    }  # fmt: skip
    if started:
        nodes = compressed(run.gpus)
        values |= {"start": run.start, "gpus": number, "nodes": nodes, "n_nodes": len(run.gpus), "alloc_tres": tres}
    if ended:
        past = sum(b - a for a, b in run.suspended)
        values |= {"end": run.end, "elapsed_s": (run.end or 0) - run.start, "suspended_s": past, "exit_code": 0}
    return JobRecord(**values)


def _in_slurmctld(run: WorldRun, at: int) -> list[RunningJob]:
    if at < run.submit or (run.end is not None and at >= run.end + run.completing_s + MIN_JOB_AGE_S):
        return []
    started, held = run.start <= at, run.running(at)
    stopped = within(run.suspended, at)
    completing = run.end is not None and run.end <= at < run.end + run.completing_s
    state = "PENDING" if not started else "SUSPENDED" if stopped else "RUNNING" if held else "COMPLETED"
    state = "COMPLETING" if completing else state
    there = held or completing
    number = {"gpu": 1, "mig": 1, "shard": 0, "cpu": 0}[run.kind]
    nodes = {name: GresOnNode(gpus=number * len(uuids)) for name, uuids in run.gpus.items()} if there else {}
    return [
        RunningJob(
            run.job_id, run.printed_id, "", "alice", 1001, "a", "gpu", "", state, run.submit,
            run.start if started else None, run.end if run.end is not None and run.end <= at else None, 0,
            compressed(run.gpus) if started else "", len(run.gpus), nodes, array_job_id=run.array_job_id,
            array_task_id=run.array_task_id, het_job_id=run.het_job_id, het_offset=run.het_offset,
        )
    ]  # fmt: skip
