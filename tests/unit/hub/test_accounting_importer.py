"""The import from accounting: incremental, late rows taken, bad rows kept aside, down and up again."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from gpuwaste.core.errors import SlurmError
from gpuwaste.core.worker import Bus
from gpuwaste.jobs.cluster_facts import ClusterFacts
from gpuwaste.jobs.importers.accounting import ImportSettings
from gpuwaste.jobs.importers.accounting_importer import Importer, QuarantinedRows, RunsStored
from gpuwaste.jobs.run_store import history_events, open_run_keys, runs_of_id
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.accounting.sacct_rows import BadRow
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.slurm.site.cluster_model import Partition
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.testing.clocks import FakeClock
from gpuwaste.testing.fake_slurm import FakeSlurm

NOW = 1_700_000_000
DAY = 86400


@dataclass(slots=True)
class Accounting(FakeSlurm):
    """A FakeSlurm that notes the windows asked for, and can break off after some rows."""

    windows: list[tuple[int, int]] = field(default_factory=list)
    breaks_after: int | None = None

    def accounting(self, start: int, end: int) -> Iterator[JobRecord | BadRow]:
        """Yield the rows of the window, up to the break."""
        self.windows.append((start, end))
        for number, row in enumerate(FakeSlurm.accounting(self, start, end)):
            if number == self.breaks_after:
                raise SlurmError("sacct: killed by signal 9")
            yield row


class Bench:
    """An importer at NOW, with a first import of two days."""

    def __init__(self, *records: JobRecord | BadRow) -> None:
        self.clock = FakeClock(NOW)
        self.slurm = Accounting(records=list(records))
        self.store = HubStore.open(":memory:", self.clock)
        self.quarantined = QuarantinedRows()
        self.learned: list[int] = []
        bus = Bus()
        bus.subscribe(RunsStored, self.learn)
        self.importer = Importer(
            self.store,
            self.slurm,
            ClusterFacts(self.slurm, self.clock),
            quarantined=self.quarantined,
            clock=self.clock,
            settings=ImportSettings(60, 3600, 2),
            bus=bus,
        )

    def learn(self, event: RunsStored) -> None:
        """Note what the map would be told."""
        self.learned += [r.job_id for r in event.records]

    def states(self, job_id: int) -> list[tuple[int, str]]:
        """Return (key's start, state) of the job's runs, the newest first."""
        return [(r.run_key.start, r.state) for r in runs_of_id(self.store, "gw", job_id)]

    def events(self) -> list[tuple[str, int, int]]:
        """Return the events."""
        return [(e.kind, e.run_key.job_id, e.run_key.start) for e in history_events(self.store, 0, 100)]


def run(job_id: int = 7, submit: int = NOW - 500, **more: object) -> JobRecord:
    """Return a record."""
    return JobRecord("gw", job_id, submit, **more)  # type: ignore[arg-type]


def test_the_first_import_reads_days_and_later_ones_the_overlap() -> None:
    """Two days come in windows of a day; then each import begins an overlap before the mark."""
    bench = Bench(run(start=NOW - 400, state="RUNNING"))
    assert bench.importer.step() == 60
    assert bench.slurm.windows == [(NOW - 2 * DAY, NOW - DAY), (NOW - DAY, NOW)]
    bench.clock.advance(60)
    bench.slurm.windows.clear()
    bench.importer.step()
    assert bench.slurm.windows == [(NOW - 3600, NOW + 60)]
    assert (bench.store.mark("sacct:gw"), bench.importer.lag_s()) == (NOW + 60, 0.0)


def test_a_job_is_followed_from_submit_to_end() -> None:
    """Pending, running, ended: one row at a time under the key of its moment, and one event for each step."""
    bench = Bench(run(state="PENDING"))
    bench.importer.step()
    assert bench.states(7) == [(NOW - 500, "PENDING")]
    bench.slurm.records = [run(start=NOW - 100, state="RUNNING")]
    bench.importer.step()
    assert bench.states(7) == [(NOW - 100, "RUNNING")]
    bench.slurm.records = [run(start=NOW - 100, end=NOW - 10, state="COMPLETED")]
    bench.importer.step()
    bench.importer.step()
    assert bench.states(7) == [(NOW - 100, "COMPLETED")]
    assert bench.events() == [("submitted", 7, NOW - 500), ("started", 7, NOW - 100), ("ended", 7, NOW - 100)]
    assert [e.job is not None for e in history_events(bench.store, 0, 9)] == [True, True, True]
    assert bench.learned == [7, 7, 7, 7]


def test_a_requeue_keeps_the_earlier_run() -> None:
    """The run that was requeued stays beside the one that followed it; its new submission is another row."""
    first = run(submit=NOW - 500, start=NOW - 400, end=NOW - 300, state="REQUEUED")
    bench = Bench(first, run(submit=NOW - 300, state="PENDING"))
    bench.importer.step()
    bench.slurm.records = [first, run(submit=NOW - 300, start=NOW - 200, state="RUNNING")]
    bench.importer.step()
    assert bench.states(7) == [(NOW - 200, "RUNNING"), (NOW - 400, "REQUEUED")]


def test_job_ids_that_wrap_are_new_runs() -> None:
    """The same id years later is another run; the old one keeps its row and its events."""
    bench = Bench(run(submit=NOW - DAY, start=NOW - DAY, end=NOW - DAY + 9, state="COMPLETED"))
    bench.importer.step()
    bench.slurm.records = [run(submit=NOW - 5, start=NOW - 4, state="RUNNING")]
    bench.importer.step()
    assert bench.states(7) == [(NOW - 4, "RUNNING"), (NOW - DAY, "COMPLETED")]


def test_a_job_cancelled_before_it_started_has_ended() -> None:
    """It keeps the key of its submit, and has an end event and no start event."""
    bench = Bench(run(end=NOW - 10, state="CANCELLED"))
    bench.importer.step()
    assert (bench.states(7), bench.events()) == ([(NOW - 500, "CANCELLED")], [("ended", 7, NOW - 500)])


def test_a_job_that_starts_in_the_second_of_its_submit_has_started() -> None:
    """Its key does not change, and its start is told all the same."""
    bench = Bench(run(state="PENDING"))
    bench.importer.step()
    bench.slurm.records = [run(start=NOW - 500, state="RUNNING")]
    bench.importer.step()
    assert bench.states(7) == [(NOW - 500, "RUNNING")]
    assert bench.events() == [("submitted", 7, NOW - 500), ("started", 7, NOW - 500)]


def test_a_submission_is_told_once() -> None:
    """A job that waits is one submission, however often it is told and changed; one seen running had none."""
    bench = Bench(run(state="PENDING"), run(8, start=NOW - 100, state="RUNNING"))
    bench.importer.step()
    bench.slurm.records = [run(state="PENDING", time_limit_s=60), *bench.slurm.records[1:]]
    bench.importer.step()
    bench.slurm.records = [run(end=NOW - 1, state="CANCELLED"), *bench.slurm.records[1:]]
    bench.importer.step()
    assert bench.events() == [("submitted", 7, NOW - 500), ("started", 8, NOW - 100), ("ended", 7, NOW - 500)]


def test_bad_rows_are_kept_aside_once() -> None:
    """A row that cannot be read is in quarantine with its line, counted once however often the overlap reads it."""
    bench = Bench(BadRow(3, "25 fields where 26 were asked", "7|..."), run(start=NOW - 9, state="RUNNING"))
    bench.importer.step()
    bench.importer.step()
    assert (bench.store.counts()["quarantine"], bench.importer.status.bad_rows) == (1, 1)
    samples = [sample for family in bench.quarantined.counted() for sample in family.samples]
    assert [(s.labels, s.value) for s in samples if s.name.endswith("_total")] == [({"source": "sacct"}, 1.0)]
    assert bench.states(7) == [(NOW - 9, "RUNNING")]


def test_accounting_that_is_down_is_tried_again() -> None:
    """Failures are counted, waits grow, the mark stays; the next success reads from there."""
    bench = Bench(run(start=NOW - 9, state="RUNNING"))
    bench.slurm.failure = "sacct: Problem talking to the database: Connection refused"
    waits = [bench.importer.step() for _ in range(8)]
    assert waits == sorted(waits)
    assert waits[0] < waits[-1] <= 300
    assert "Connection refused" in bench.importer.status.error
    assert bench.store.mark("sacct:gw") is None
    bench.slurm.failure = ""
    assert bench.importer.step() == 60
    assert (bench.importer.status.failures, bench.states(7)) == (0, [(NOW - 9, "RUNNING")])


def test_an_import_that_breaks_off_is_done_again() -> None:
    """Rows before the break are kept, the mark is not moved past them, and the next import completes it."""
    bench = Bench(*(run(j, start=NOW - j, state="RUNNING") for j in range(1, 6)))
    bench.slurm.breaks_after = 3
    bench.importer.step()
    assert bench.store.mark("sacct:gw") == NOW - DAY
    bench.slurm.breaks_after = None
    bench.importer.step()
    assert len(open_run_keys(bench.store, "gw")) == 5


def test_a_run_that_accounting_ended_in_the_past_is_found() -> None:
    """A run that is open here and is not told any more is looked for from its submit on, and gets its end."""
    old = run(submit=NOW - DAY, start=NOW - DAY, state="RUNNING")
    bench = Bench(old)
    bench.importer.step()
    bench.slurm.records = [run(submit=NOW - DAY, start=NOW - DAY, end=NOW - DAY + 60, state="FAILED")]
    bench.clock.advance(60)
    bench.importer.step()
    assert bench.states(7) == [(NOW - DAY, "FAILED")]
    assert open_run_keys(bench.store, "gw") == {}


def test_a_run_that_accounting_has_lost_is_looked_for_once() -> None:
    """A run that no window tells stays open, and costs one wide look, not one each minute."""
    bench = Bench(run(submit=NOW - DAY, start=NOW - DAY, state="RUNNING"))
    bench.importer.step()
    bench.slurm.records = []
    counts = []
    for _ in range(3):
        bench.slurm.windows.clear()
        bench.clock.advance(700)
        bench.importer.step()
        counts.append(len(bench.slurm.windows))
    assert counts == [2, 1, 1]
    assert open_run_keys(bench.store, "gw") == {RunKey("gw", 7, NOW - DAY): NOW - DAY}


def test_partitions_come_with_it() -> None:
    """Whole-node partitions are known to the store; select/linear makes every partition one."""
    bench = Bench()
    bench.slurm.partition_list = [Partition("gpu"), Partition("whole", whole_nodes=True)]
    bench.importer.step()
    assert partitions(bench) == {"gpu": False, "whole": True}
    bench.slurm.settings["SelectType"] = "select/linear"
    bench.clock.advance(301)
    bench.importer.step()
    assert partitions(bench) == {"gpu": True, "whole": True}


def partitions(bench: Bench) -> dict[str, bool]:
    with bench.store.reader() as db:
        return dict(db.execute("SELECT name, whole_node FROM partitions").fetchall())
