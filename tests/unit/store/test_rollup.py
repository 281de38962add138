"""Hours added up by day: the same ledger before and after, each hour once whatever comes late, a kill in the middle."""

import contextlib
import math
import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples

from gpuwaste.core.clock import SystemClock
from gpuwaste.core.units import DAY_S, HOUR_S
from gpuwaste.jobs.run_store import history_events, upsert_jobs
from gpuwaste.ledger.hour import HOUR_MS, AllocationHour
from gpuwaste.ledger.hour_store import upsert_hours
from gpuwaste.ledger.ledger import LedgerSettings
from gpuwaste.ledger.reports.job_document import job_document
from gpuwaste.ledger.reports.report_builder import report_document
from gpuwaste.ledger.reports.report_types import Scope
from gpuwaste.ledger.rollup import Rollup
from gpuwaste.ledger.run_judging import HANG_LIMITS
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.store.database import Database
from gpuwaste.store.hub.hub_store import HubStore

pytestmark = pytest.mark.long

DAY = 1_700_000_000 // DAY_S * DAY_S
NOW = DAY + 50 * DAY_S
BEFORE = DAY + 20 * DAY_S
PERIOD_OF_ALL = (DAY - DAY_S, NOW)
SUBJECTS: tuple[tuple[Scope, str], ...] = (("cluster", ""), ("account", "a"), ("user", "user0"), ("user", "user1"))
REASONS = ("gap", "conflict", "mig")


def new_store() -> HubStore:
    return HubStore.open(":memory:", SystemClock())


def roll(store: HubStore, before: int = BEFORE, step_hours: int = 7) -> int:
    return sum(Rollup(store, HANG_LIMITS, step_hours).steps(before))


def run(job_id: int, start: int, hours: int, gpus: int = 1, **changes: Any) -> JobRecord:
    """Return a completed run of whole hours from the `start`-th hour after DAY."""
    begin = DAY + start * HOUR_S
    record = JobRecord(
        "gw", job_id, begin - 60, str(job_id), user=f"user{job_id % 3}", account="a", start=begin,
        end=begin + hours * HOUR_S, elapsed_s=hours * HOUR_S, state="COMPLETED", gpus=gpus, cpus=8, n_nodes=1,
    )  # fmt: skip
    return replace(record, **changes)


def row(record: JobRecord, gpu: int, index: int, rng: random.Random, seq: int = 1) -> AllocationHour:
    """Return the row of the index-th hour of a run, anything in it."""
    start_s = (record.start or 0) + index * HOUR_S
    parts = rng.randint(1, 6)
    cuts = sorted(rng.sample(range(1, HOUR_MS), parts))
    lengths = [b - a for a, b in zip([0, *cuts], [*cuts, HOUR_MS], strict=True)]
    util = dict(zip(rng.sample([0, 1, 32, 33, 66, 67, 94, 95, 100], parts), lengths, strict=False))
    unknown = {rng.choice(REASONS): lengths[-1] - lengths[-1] // 3}
    full = any(p >= 95 for p in util)
    return AllocationHour(
        record.run_key, f"gpu{gpu // 2}", f"GPU-{gpu}", start_s, seq, start_s * 1000, start_s * 1000 + HOUR_MS,
        share=rng.choice([1.0, 1.0, 0.5]) if gpu == 3 else 1.0, final=True, util_ms=util,
        idle_run_ms=rng.randint(0, util.get(0, 0)), unknown_ms=unknown, suspended_ms=lengths[-1] // 3,
        proc_seen=rng.random() < 0.5, mem_max_b=rng.choice([None, rng.randrange(2**36)]), mem_total_b=2**36,
        last_active_ms=rng.choice([None, start_s * 1000 + 5]),
        power_w_at_full=rng.choice([50.0, 300.5]) if full else None, power_limit_w=400.0,
        sm_ratio_at_full=rng.choice([None, 0.01, 0.7]) if full else None, cpu_s=rng.choice([None, rng.random() * 9e3]),
        host_mem_max_b=rng.choice([None, rng.randrange(2**34)]), map_source=rng.choice(["prolog", "stepd"]),
        confidence=rng.choice(["confirmed", "conflict"]), **profile(rng), **energy(rng, util), **cpu_energy(rng),
    )  # fmt: skip


def energy(rng: random.Random, util: dict[int, int]) -> dict[str, Any]:
    """Return what an agent of today or an older one said of the energy of an hour, or nothing."""
    joules = rng.choice([None, rng.random() * 1e6])
    if joules is None or rng.random() < 0.4:
        return {"energy_j": joules}
    part = util.get(0, 0) / HOUR_MS
    return {"energy_j": joules, "energy_ms": rng.randint(1, HOUR_MS), "idle_energy_j": joules * part}


def cpu_energy(rng: random.Random) -> dict[str, Any]:
    """Return what an agent that reads the counters of CPU packages said, or nothing."""
    if rng.random() < 0.5:
        return {}
    return {"cpu_energy_j": rng.random() * 1e6, "cpu_energy_ms": rng.randint(1, HOUR_MS)}


def profile(rng: random.Random) -> dict[str, Any]:
    """Return what profiling counters said in an hour: nothing, or some of the figures."""
    if rng.random() < 0.5:
        return {}
    ratios = {name: rng.choice([None, rng.random()]) for name in ("sm_active", "tensor_active", "dram_active")}
    counts = {name: rng.choice([None, rng.randrange(2**40)]) for name in ("nvlink_b", "pcie_b")}
    return {"profiled_ms": rng.randint(1, HOUR_MS), **ratios, **counts}


@st.composite
def sites(draw: st.DrawFn) -> tuple[list[JobRecord], list[AllocationHour]]:
    """Draw runs of up to two and a half days, and the hours of their GPUs, some of which are missing."""
    rng = random.Random(draw(st.integers(0, 2**32)))
    jobs = [
        run(i, draw(st.integers(0, 47)), draw(st.integers(1, 60)), draw(st.integers(1, 4)))
        for i in range(1, draw(st.integers(2, 5)))
    ]
    rows = [
        row(j, gpu, i, rng)
        for j in jobs
        for gpu in range(j.gpus or 0)
        for i in range(((j.end or 0) - (j.start or 0)) // HOUR_S)
        if rng.random() < 0.9
    ]
    return jobs, rows


def documents(store: HubStore) -> dict[str, Any]:
    """Return all that a reader can see of the runs' GPUs."""
    ledger = LedgerSettings()
    with store.reader() as db:
        found: dict[str, Any] = {
            f"{scope}:{name}": report_document(db, scope, name, 0, NOW, ledger, NOW).to_json()
            for scope, name in SUBJECTS
        }
        found["stricter"] = report_document(
            db, "cluster", "", 0, NOW, replace(ledger, low_below_pct=50.0, high_above_pct=95.0), NOW
        ).to_json()
        job = job_document(db, "1", ledger, NOW)
        found["job"] = job.to_json() if job else None
    found["use"] = [(e.kind, e.run_key, vars_of(e.use)) for e in history_events(store, 0, 10_000)]
    return found


def vars_of(use: Any) -> Any:
    return None if use is None else (use.used_ratio, use.gpus_active, use.coverage, use.gpus_used)


def same(one: Any, other: Any, where: str = "") -> None:
    """Compare documents: whole numbers and words exactly, other numbers up to the order of an addition."""
    if isinstance(one, dict):
        assert one.keys() == other.keys(), where
        for key in one:
            same(one[key], other[key], f"{where}.{key}")
    elif isinstance(one, list | tuple):
        assert len(one) == len(other), where
        for i, (a, b) in enumerate(zip(one, other, strict=True)):
            same(a, b, f"{where}[{i}]")
    elif isinstance(one, float) and isinstance(other, float) and not where.endswith("_s"):
        assert math.isclose(one, other, rel_tol=1e-9) or (math.isnan(one) and math.isnan(other)), where
    else:
        assert one == other, f"{where}: {one!r} != {other!r}"


def sums(store: HubStore) -> tuple[int, ...]:
    """Return every millisecond of hours and days, and how many hours there are."""
    with store.reader() as db:
        found = db.execute(
            "SELECT sum(list_sum(util_ms)), sum(list_sum(unknown_ms)), sum(suspended_ms), sum(idle_run_ms), sum(n)"
            " FROM "
            "(SELECT util_ms, unknown_ms, suspended_ms, idle_run_ms, 1 AS n FROM hours UNION ALL "
            "SELECT util_ms, unknown_ms, suspended_ms, idle_run_ms, bit_count(hours) FROM days)"
        ).fetchall()[0]
    return tuple(int(v or 0) for v in found)


@pytest.mark.timeout(600)  # each drawn site is judged several times
@settings(max_examples=examples(25, 2), deadline=None)
@given(sites(), st.integers(1, 3), st.integers(1, 50))
def test_a_report_is_the_same_before_and_after(
    site: tuple[list[JobRecord], list[AllocationHour]], cut: int, step_hours: int
) -> None:
    """Whatever ran, reports, jobs, findings and the history say the same of hours, of days, and of a part of each."""
    jobs, rows = site
    store = new_store()
    upsert_jobs(store, jobs)
    upsert_hours(store, rows)
    before, total = documents(store), sums(store)
    roll(store, DAY + cut * DAY_S, step_hours)
    same(before, documents(store))
    roll(store, BEFORE, step_hours)
    same(before, documents(store))
    assert (sums(store), store.counts()["hours"]) == (total, 0)
    assert store.counts()["days"] == len({(r.run_key, r.gpu_uuid, r.hour_utc // DAY_S) for r in rows})
    store.close()


@pytest.mark.timeout(600)  # each drawn site is judged several times
@settings(max_examples=examples(15, 2), deadline=None)
@given(sites(), st.integers(0, 999))
def test_late_hours_count_once(site: tuple[list[JobRecord], list[AllocationHour]], seed: int) -> None:
    """Hours that come after their day was added up, anew or again, in any order, give what they give in time."""
    jobs, rows = site
    rng = random.Random(seed)
    late = new_store()
    upsert_jobs(late, jobs)
    upsert_hours(late, [r for r in rows if rng.random() < 0.5])
    roll(late)
    for _ in range(2):
        again = list(rows)
        rng.shuffle(again)
        upsert_hours(late, again)
        roll(late)
    whole = new_store()
    upsert_jobs(whole, jobs)
    upsert_hours(whole, rows)
    same(documents(whole), {**documents(late), "use": documents(whole)["use"]})
    assert (sums(late), late.counts()["hours"]) == (sums(whole), 0)
    late.close()
    whole.close()


def test_a_correction_after_the_roll_up_is_not_taken() -> None:
    """A higher seq of an hour that is in a day changes nothing; of an hour that is not yet, it wins as ever."""
    store, rng, job = new_store(), random.Random(1), run(1, 0, 30)
    upsert_jobs(store, [job])
    rows = [row(job, 0, i, rng) for i in range(30)]
    upsert_hours(store, rows[:20])
    roll(store)
    kept = sums(store)
    assert upsert_hours(store, [replace(rows[3], seq=99, util_ms={100: 5})]) == 0
    assert sums(store) == kept
    upsert_hours(store, rows)
    assert upsert_hours(store, [replace(rows[25], seq=99)]) == 1
    store.close()


def test_what_is_not_settled_stays_in_hours() -> None:
    """Hours of a running job, of one that ended lately, of one that accounting does not tell, and open ones stay."""
    store, rng = new_store(), random.Random(2)
    jobs = {
        "running": run(1, 0, 2, end=None, state="RUNNING"),
        "lately": run(2, 0, 2, end=BEFORE + 5),
        "open": run(4, 0, 2),
        "due": run(5, 0, 2),
    }
    upsert_jobs(store, list(jobs.values()))
    untold = run(3, 0, 2)
    upsert_hours(store, [row(job, 0, 0, rng) for job in (*jobs.values(), untold) if job is not jobs["open"]])
    upsert_hours(store, [replace(row(jobs["open"], 0, 0, rng), final=False)])
    assert roll(store) == 1
    assert (store.counts()["hours"], store.counts()["days"]) == (4, 1)
    assert roll(store) == 0
    store.close()


class Corrected(HubStore):
    """A store that takes a correction just before the next exchange."""

    correction: AllocationHour | None = None

    @contextlib.contextmanager
    def exchanging(self, db: Database) -> Iterator[None]:
        """Take it, then go on."""
        if self.correction is not None:
            upsert_hours(self, [self.correction])
            self.correction = None
        with super().exchanging(db):
            yield


def test_an_hour_that_is_corrected_in_between_is_added_up_later() -> None:
    """A correction between the sum and the exchange wins: the step takes nothing, the next one the new row."""
    store, rng, job = Corrected.open(":memory:", SystemClock()), random.Random(3), run(1, 0, 2)
    upsert_jobs(store, [job])
    first = row(job, 0, 0, rng)
    upsert_hours(store, [first])
    store.correction = replace(first, seq=2, util_ms={50: 7}, idle_run_ms=0, unknown_ms={}, suspended_ms=0)
    assert (roll(store), store.counts()["days"]) == (0, 0)
    assert (roll(store), sums(store)) == (1, (7, 0, 0, 0, 1))
    store.close()


def test_a_run_of_another_user_is_found_under_the_new_name() -> None:
    """Accounting tells another user of a run whose hours were added up: his report has them, the old one's has not."""
    store, rng, job = new_store(), random.Random(4), run(1, 0, 2)
    upsert_jobs(store, [job])
    upsert_hours(store, [row(job, 0, i, rng) for i in range(2)])
    roll(store)
    upsert_jobs(store, [replace(job, user="renamed")])
    with store.reader() as db:
        known = [
            report_document(db, "user", name, 0, NOW, LedgerSettings(), NOW).totals.coverage
            for name in ("renamed", job.user)
        ]
    assert known[0] is not None
    assert known[0] > 0
    assert known[1] is None
    store.close()
