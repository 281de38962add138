"""Settled runs are judged once, and reports from the table are those that judge every run when asked."""

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.unit.ledger import builders
from tests.unit.store.test_rollup import DAY, new_store, row, run, same, sites

from gpuwaste.act.notify.notice_decisions import staff_list
from gpuwaste.core.clock import SystemClock
from gpuwaste.core.units import DAY_S, HOUR_S
from gpuwaste.jobs.run_store import set_partitions, upsert_jobs
from gpuwaste.ledger.hour import AllocationHour
from gpuwaste.ledger.hour_store import upsert_hours
from gpuwaste.ledger.judged_runs import judged_runs
from gpuwaste.ledger.judging import Judging
from gpuwaste.ledger.ledger import LedgerSettings
from gpuwaste.ledger.reports.report_builder import report_document
from gpuwaste.ledger.reports.report_types import Scope
from gpuwaste.ledger.run_judging import Selection
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.store.database import Database
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.testing.clocks import FakeClock

pytestmark = pytest.mark.long

NOW = DAY + 8 * DAY_S  # each day until then has its sums made, and the last run of a drawn site ends on the fifth
LEDGER = LedgerSettings()
STRICT = replace(LEDGER, low_below_pct=50.0, high_above_pct=95.0)
STOP = threading.Event()
EDGES = (DAY + 5 * HOUR_S + 1234, DAY + 30 * HOUR_S + 99)


def judging(store: HubStore, ledger: LedgerSettings = LEDGER, now: int = NOW, step_runs: int = 2) -> Judging:
    """Return what judges a store's runs, two at a time."""
    return Judging(store, ledger, FakeClock(now), lambda _: None, step_runs)


SUBJECTS: tuple[tuple[Scope, str], ...] = (("cluster", ""), ("user", "user1"))


def documents(
    store: HubStore, ledger: LedgerSettings = LEDGER, limit: int | None = None, now: int = NOW
) -> dict[str, Any]:
    """Return reports over all time and over a window that cuts runs, and the staff's list."""
    with store.reader() as db:
        found: dict[str, Any] = {
            f"{scope} {name} {window}": report_document(db, scope, name, *window, ledger, now, limit=limit).to_json()
            for scope, name in SUBJECTS
            for window in ((0, now), EDGES)
        }
        with judged_runs(db, Selection(*EDGES), ledger, now, cut=False) as runs:
            found["staff"] = staff_list(runs.by_user(), (DAY, now), 0.5, 2).to_json()
    return found


HELD = f"""
SELECT "user", sum(gpus * (least(coalesce("end", {NOW}), $end) - greatest("start", $start)))::DOUBLE
FROM jobs
WHERE gpus > 0 AND "start" < $end AND ("end" IS NULL OR "end" > $start)
GROUP BY ALL
"""  # noqa: S608 a number of this file


def judged_count(store: HubStore) -> int:
    with store.reader() as db:
        return int(db.execute("SELECT count(*) FROM judged").fetchall()[0][0])


def filled(site: tuple[list[JobRecord], list[AllocationHour]]) -> HubStore:
    """Return a store with a site's runs, of which the last is open, and two are tasks of an array."""
    jobs, hours = site
    tasks = {job.job_id: replace(job, array_job_id=77, array_task_id=job.job_id) for job in jobs[:2]}
    jobs = [tasks.get(job.job_id, job) for job in jobs]
    store = new_store()
    upsert_jobs(store, [*jobs, run(99, 20, 30, state="RUNNING", end=None, elapsed_s=None)])
    upsert_hours(store, hours)
    return store


@settings(max_examples=examples(15, 2), deadline=None)
@given(sites())
def test_windows_that_follow_each_other_add_up(site: tuple[list[JobRecord], list[AllocationHour]]) -> None:
    """Classes, reasons, waste and energy of windows without a gap are those of all time; GPU-time is accounting's."""
    store = filled(site)
    edges = [0, *EDGES, NOW]
    with store.reader() as db:
        whole, *parts = (
            report_document(db, "cluster", "", *window, LEDGER, NOW).to_json()
            for window in ((0, NOW), *pairwise(edges))
        )
        held = [dict(db.execute(HELD, {"start": start, "end": end}).fetchall()) for start, end in pairwise(edges)]
    store.close()
    assert [{user["user"]: user["gpu_s"] for user in part["users"] if user["gpu_s"]} for part in parts] == held
    for what in ("totals", "shared"):
        for name, all_time in whole[what].items():
            cut = [part[what].get(name) for part in parts]
            if name.endswith("by_reason_s"):
                sums = {reason: sum(some.get(reason, 0) for some in cut) for reason in all_time}
                assert sums == pytest.approx(all_time, abs=0.1), name
            elif name.endswith("_s") or name == "energy_j":
                assert sum(some or 0 for some in cut) == pytest.approx(all_time or 0, abs=0.1), name


@pytest.mark.timeout(600)  # each drawn site is judged several times
@settings(max_examples=examples(15, 2), deadline=None)
@given(sites(), st.sampled_from([None, 0, 1, 3]))
def test_the_table_says_what_judging_when_asked_says(
    site: tuple[list[JobRecord], list[AllocationHour]], limit: int | None
) -> None:
    """Each number of a report is the same before and after the runs were judged; each run is judged once."""
    store = filled(site)
    before = documents(store, limit=limit)
    assert judging(store).step(STOP) == len(site[0]) == judged_count(store)
    same(before, documents(store, limit=limit))
    assert judging(store).step(STOP) == 0
    store.close()


def a_store() -> tuple[HubStore, JobRecord, AllocationHour]:
    """Return a store with two judged runs, one of them, and an hour that it lacks."""
    rng = random.Random(3)
    late, other = run(1, 0, 5), run(2, 3, 4)
    rows = [row(late, 0, index, rng) for index in range(5)] + [row(other, 1, index, rng) for index in range(4)]
    store = new_store()
    upsert_jobs(store, [late, other])
    upsert_hours(store, rows[1:])
    assert judging(store).step(STOP) == 2
    return store, late, rows[0]


def test_an_hour_that_comes_late_has_its_run_judged_again() -> None:
    """The report has the late hour at once, and the run is judged once more; the other run is not."""
    store, late, hour = a_store()
    before = documents(store)
    upsert_hours(store, [hour])
    assert judged_count(store) == 1
    now = documents(store)
    assert now[f"user user1 {(0, NOW)}"]["totals"]["coverage"] > before[f"user user1 {(0, NOW)}"]["totals"]["coverage"]
    assert judging(store).step(STOP) == 1
    same(now, documents(store))
    assert late.run_key.job_id == 1


def test_a_share_that_comes_late_has_its_run_judged() -> None:
    """A run of which accounting knows no GPU is judged once a share of one is reported, however late that is."""
    store = a_store()[0]
    sharer = run(3, 0, 5, gpus=0, alloc_tres="cpu=1")
    upsert_jobs(store, [sharer])
    assert judging(store).step(STOP) == 0
    upsert_hours(store, [replace(row(sharer, 0, 0, random.Random(4)), share=0.5)])
    now = documents(store)
    assert now[f"cluster  {(0, NOW)}"]["shared"]["gpu_s"] > 0
    assert judging(store).step(STOP) == 1
    same(now, documents(store))


class MeddledStore(HubStore):
    """A store in which something changes after runs were judged and before they are stored."""

    meddle: Callable[[], object] | None = None

    @contextmanager
    def exchanging(self, db: Database) -> Iterator[None]:
        """Change it once."""
        if self.meddle is not None:
            meddle, self.meddle = self.meddle, None
            meddle()
        with super().exchanging(db):
            yield


@pytest.mark.parametrize("what", ["hour", "accounting", "another run", "partition", "judged run"])
def test_what_changes_while_runs_are_judged_is_judged_by_the_change(what: str) -> None:
    """An hour, a record or a partition that comes between judging and storing leaves no row of the past behind."""
    rng = random.Random(5)
    runs = [run(number, number, 5) for number in range(1, 6)]
    hours = [row(record, 0, index, rng) for record in runs for index in range(5)]
    store = MeddledStore.open(":memory:", SystemClock())
    upsert_jobs(store, runs)
    upsert_hours(store, hours[1:10] + hours[11:])
    changes: dict[str, Callable[[], object]] = {
        "hour": lambda: upsert_hours(store, [hours[10]]),
        "accounting": lambda: upsert_jobs(store, [replace(runs[2], account="b", end=(runs[2].end or 0) - HOUR_S)]),
        "another run": lambda: upsert_jobs(store, [run(9, 3, 2)]),
        "partition": lambda: set_partitions(store, "gw", {"": True}),
        "judged run": lambda: upsert_hours(store, [hours[0]]),
    }
    judge = judging(store, step_runs=3)
    if what == "judged run":  # two of the runs were judged before
        stop = threading.Event()
        store.meddle = stop.set
        judging(store, step_runs=2).step(stop)
        assert judged_count(store) == 2
    store.meddle = changes[what]
    judge.step(STOP)
    assert vars(store)["meddle"] is None
    assert judged_count(store) == len(runs) + (what == "another run")
    found = documents(store)
    with store.writing() as db:
        db.execute("DELETE FROM judged")
        db.execute("DELETE FROM summed_days")
        db.execute("UPDATE rules SET judged_until = 0")
    same(found, documents(store))
    store.close()


def test_a_judged_run_that_changes_while_an_earlier_one_is_judged_again_is_not_missed() -> None:
    """A second late hour, of a run behind the one that a first late hour has judged again, has its run judged, too."""
    rng = random.Random(5)
    runs = [run(number, number, 5) for number in range(1, 6)]
    hours = [row(record, 0, index, rng) for record in runs for index in range(5)]
    store = MeddledStore.open(":memory:", SystemClock())
    upsert_jobs(store, runs)
    upsert_hours(store, hours[1:10] + hours[11:])
    judge = judging(store, step_runs=3)
    judge.step(STOP)
    upsert_hours(store, [hours[0]])
    store.meddle = lambda: upsert_hours(store, [hours[10]])
    judge.step(STOP)
    assert vars(store)["meddle"] is None
    assert judged_count(store) == len(runs)
    store.close()


def test_what_accounting_tells_anew_is_judged_again() -> None:
    """A run that gets another state and account is reported and judged with these."""
    store, late, _ = a_store()
    upsert_jobs(store, [replace(late, state="FAILED", account="b")])
    assert judged_count(store) == 1
    now = documents(store)
    assert judging(store).step(STOP) == 1
    same(now, documents(store))
    assert {job["account"] for job in now[f"cluster  {(0, NOW)}"]["jobs"]} == {"a", "b"}


def test_a_partition_that_comes_whole_has_its_runs_judged_again() -> None:
    """The lines of findings depend on whether a partition gives whole nodes: its runs are judged anew."""
    store, _, _ = a_store()
    set_partitions(store, "gw", {"": True})
    assert judged_count(store) == 0
    assert judging(store).step(STOP) == 2
    set_partitions(store, "gw", {"": True, "other": True})
    assert judged_count(store) == 2


def test_a_run_is_judged_when_its_hours_are_in_or_given_up() -> None:
    """Until the time for the last shipment is over a run is open, and so it is where it has no end."""
    store, late, _ = a_store()
    ended = run(7, 10, 2)
    upsert_jobs(store, [ended, replace(late, job_id=8, end=None, state="RUNNING")])
    end = ended.end or 0
    assert judging(store, now=end + int(LEDGER.pending_s) - 1).step(STOP) == 0
    assert judging(store, now=end + int(LEDGER.pending_s)).step(STOP) == 1


def test_changed_thresholds_judge_all_anew_and_the_old_answer_stands_until_then() -> None:
    """While runs are judged anew documents are those of before; then all change at once, and the old rows are gone."""
    store, _, _ = a_store()
    told: list[LedgerSettings] = []
    before = documents(store)
    part = Judging(store, STRICT, FakeClock(NOW), told.append, 1)
    assert part.standing == LEDGER
    stopped = threading.Event()
    stopped.set()
    part.step(stopped)  # it does not come to the end
    assert (part.standing, told) == (LEDGER, [])
    same(before, documents(store, part.standing))
    wanted = documents(store, STRICT)
    assert part.step(STOP) == 2
    assert (part.standing, told) == (STRICT, [STRICT])
    same(wanted, documents(store, STRICT))
    assert judged_count(store) == 2
    assert Judging(store, LEDGER, FakeClock(NOW), told.append).standing == STRICT


def test_going_back_to_the_old_thresholds_ends_judging_anew() -> None:
    """What was begun by thresholds that nobody wants any more is dropped."""
    store, _, _ = a_store()
    stopped = threading.Event()
    stopped.set()
    judge = judging(store, STRICT)
    judge.step(stopped)
    judge.judge_by(LEDGER)
    assert judge.step(STOP) == 0
    with store.reader() as db:
        assert db.execute("SELECT standing, thresholds FROM rules").fetchall() == [(True, LEDGER.to_text())]


def test_progress_is_told() -> None:
    """Health and metrics say until when runs are judged, and which share by new thresholds."""
    store, _, _ = a_store()
    judge = judging(store, STRICT)
    judge.step(STOP)
    assert (judge.health().judged_until or 0) >= NOW - int(LEDGER.pending_s)
    values = {sample.name: sample.value for family in judge.metrics() for sample in family.samples}
    assert values["gpuwaste_hub_judged_anew_ratio"] == 1.0
    assert values["gpuwaste_hub_judging_lag_seconds"] >= LEDGER.pending_s


@pytest.mark.parametrize(
    ("start", "end", "seconds"),
    [
        (0, 3, {"gpu_s": 10800, "idle_s": 5400, "wasted_s": 5400, "high_s": 5400}),
        (0, 1, {"gpu_s": 3600, "idle_s": 0, "wasted_s": 0, "high_s": 3600}),
        (1, 2, {"gpu_s": 3600, "idle_s": 1800, "wasted_s": 1800, "high_s": 1800}),
        (1.5, 3, {"gpu_s": 5400, "idle_s": 4500, "wasted_s": 4500, "high_s": 900}),  # the second hour is half inside
        (2.25, 2.5, {"gpu_s": 900, "idle_s": 900, "wasted_s": 900, "high_s": 0}),
    ],
)
def test_a_window_cuts_the_totals_and_leaves_the_job_whole(start: float, end: float, seconds: dict[str, float]) -> None:
    """An hour that an edge cuts counts by its share inside; the line of the job is the whole run."""
    record = builders.job(7, 3 * HOUR_S)
    hours = [{90: 3600}, {90: 1800, 0: 1800}, {0: 3600}]
    db = builders.store([record], [builders.hour(record, 0, i, util) for i, util in enumerate(hours)])
    t0 = builders.T0
    window = (t0 + int(start * HOUR_S), t0 + int(end * HOUR_S))
    document = report_document(db, "cluster", "", *window, LEDGER, builders.LATER)
    assert {name: getattr(document.totals, name) for name in seconds} == seconds
    assert document.totals.unknown_s == 0
    assert [(job.gpu_s, job.wasted_s) for job in document.jobs] == [(10800, 5400)]
    assert any("partly outside" in note for note in document.notes) == (seconds["gpu_s"] < 10800)
    assert document.users[0].gpu_s == seconds["gpu_s"]


def test_the_grace_of_an_interactive_job_is_given_once() -> None:
    """The first half hour of idle time is exempt, in whichever window it lies: it is not given in each."""
    record = builders.job(7, 3 * HOUR_S, interactive=True)
    db = builders.store([record], [builders.hour(record, 0, i, {0: 3600}) for i in range(3)])
    exempt = [
        report_document(
            db, "cluster", "", builders.T0 + a, builders.T0 + a + 1200, LEDGER, builders.LATER
        ).totals.exempt_s
        for a in range(0, 3 * HOUR_S, 1200)
    ]  # fmt: skip
    assert exempt == [1200, 600, 0, 0, 0, 0, 0, 0, 0]
