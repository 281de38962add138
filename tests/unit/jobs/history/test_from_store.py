"""Tables from the hub's store: the same as from records, row for row, with the ledger's sums."""

from dataclasses import fields, replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples

from gpuwaste.core.clock import SystemClock
from gpuwaste.core.job_states import ENDED
from gpuwaste.jobs.history.from_store import read_table
from gpuwaste.jobs.history.job_table import Categories, GpuUse, JobTable, table_of
from gpuwaste.jobs.run_store import history_events, upsert_jobs
from gpuwaste.ledger.hour import AllocationHour
from gpuwaste.ledger.hour_store import upsert_hours
from gpuwaste.ledger.ledger import LedgerSettings
from gpuwaste.ledger.run_judging import Selection, job_ledgers, judge_runs
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.store.hub.hub_store import HubStore

pytestmark = pytest.mark.long

T0 = 1_700_000_000 // 3600 * 3600
TEXTS = st.sampled_from(["", "a", "b", "gpu", "A", "x\ny", "\U0001f600", "'; --"])
TRES = ["", "cpu=4,mem=62.50G,node=1,gres/gpu=2,gres/gpu:a100=2", "cpu=1,gres/gpu:v100=1", "no tres", "cpu=x,node=2"]


def hour_of(job: JobRecord, gpu: int, util: dict[int, int], **more: Any) -> AllocationHour:
    """Return a row of the run's first hour; `util` maps percent to seconds."""
    assert job.start is not None
    ms = job.start * 1000
    return AllocationHour(
        job.run_key, "gpu1", f"GPU-{gpu}", job.start - job.start % 3600, 1, ms, ms + 1000 * sum(util.values()),
        final=True, util_ms={pct: 1000 * s for pct, s in util.items()}, **more,
    )  # fmt: skip


def assert_equal(found: JobTable, expected: JobTable) -> None:
    """Compare every column: its type, its values and, of a text, the order of its values."""
    for name in (f.name for f in fields(JobTable)):
        left, right = getattr(found, name), getattr(expected, name)
        if isinstance(left, Categories):
            assert left.values == right.values, name
            left, right = left.codes, right.codes
        if isinstance(left, np.ndarray):
            assert left.dtype == right.dtype, name
            np.testing.assert_array_equal(left, right, err_msg=name)
        else:
            assert left == right, name


STORE = HubStore.open(":memory:", SystemClock())
CLUSTERS = (f"gw{number}" for number in count())  # one for each example: a store of its own would take seconds


@st.composite
def records(draw: st.DrawFn) -> list[JobRecord]:
    """Draw runs of one cluster with different keys, in any order."""
    made = {}
    for _ in range(draw(st.integers(0, 25))):
        submit = T0 + draw(st.integers(0, 50))
        start = draw(st.none() | st.integers(submit, submit + 50))
        end = draw(st.none() | st.integers(submit if start is None else start, submit + 99))
        job = JobRecord(
            "gw", draw(st.integers(1, 9)), submit, user=draw(TEXTS), account=draw(TEXTS), partition=draw(TEXTS),
            qos=draw(TEXTS), name=draw(TEXTS), time_limit_s=draw(st.none() | st.integers(0, 10**6)),
            req_tres=draw(st.sampled_from(TRES)), interactive=draw(st.booleans()), start=start, end=end,
            array_job_id=draw(st.none() | st.just(3)), elapsed_s=draw(st.none() | st.integers(0, 99)),
            state=draw(st.sampled_from([*sorted(ENDED), "PENDING", "RUNNING", ""])),
            max_rss_b=draw(st.none() | st.integers(0, 2**53)),
        )  # fmt: skip
        made[job.run_key] = job
    # One submission has one run: what still waits is replaced by what has started.
    return list({(job.job_id, job.submit): job for job in made.values()}.values())


@pytest.mark.timeout(600)  # each drawn site is judged several times
@settings(max_examples=examples(120), deadline=None)
@given(jobs=records())
def test_a_table_of_the_store_is_the_table_of_its_records(jobs: list[JobRecord]) -> None:
    """Every column, code and dictionary is the same as when the records are read one by one."""
    cluster = next(CLUSTERS)
    kept = [replace(job, cluster=cluster) for job in jobs]
    assert upsert_jobs(STORE, kept) == len(jobs)
    with STORE.reader() as db:
        assert_equal(read_table(db, cluster).table, table_of(kept))


def used(store: HubStore, job: JobRecord) -> list[float]:
    """Return used_ratio, gpus_active, coverage, ledger_at and gpus_used of one run."""
    with store.reader() as db:
        table = read_table(db, job.cluster).table
    row = int(np.flatnonzero(table.job_id == job.job_id)[0])
    assert table.gpus_used is not None
    columns = (table.used_ratio, table.gpus_active, table.gpu_coverage, table.ledger_at, table.gpus_used)
    return [float(column[row]) for column in columns]


RUN = JobRecord("gw", 7, T0, user="u", start=T0, end=T0 + 1000, elapsed_s=1000, state="COMPLETED", gpus=2)


@pytest.mark.timeout(600)  # each drawn site is judged several times
@settings(max_examples=examples(60), deadline=None)
@given(
    gpus=st.integers(1, 3),
    suspended=st.sampled_from([0, 100]),
    seen=st.lists(st.dictionaries(st.sampled_from([0, 3, 5, 50, 100]), st.integers(0, 200), max_size=4), max_size=3),
)
def test_the_sums_are_the_ledgers(gpus: int, suspended: int, seen: list[dict[int, int]]) -> None:
    """Mean use, active and used GPUs and coverage are the ledger's, whichever and however many were named.

    One GPU is active where none reaches the limit and one was used: such a run has need of a GPU.
    """
    seen = [{pct: min(s, 900 // len(util)) for pct, s in util.items()} for util in seen]
    job = replace(RUN, cluster=next(CLUSTERS), gpus=gpus, suspended_s=suspended)
    upsert_jobs(STORE, [job])
    hours = [hour_of(job, gpu, util, suspended_ms=suspended * 1000) for gpu, util in enumerate(seen)]
    upsert_hours(STORE, [replace(hour, t1_ms=hour.t1_ms + suspended * 1000) for hour in hours])
    with STORE.reader() as db:
        judge_runs(db, Selection(clusters=(job.cluster,)), LedgerSettings(), T0 + 10**6)
        _, ledger = next(job_ledgers(db))
    ratio, active, coverage, at, gpus_used = used(STORE, job)
    if ledger.mean_pct is None:
        assert np.isnan([ratio, active, coverage, gpus_used]).all()
        assert at == -1
    else:
        assert ratio * 100 == pytest.approx(ledger.mean_pct)
        assert coverage == pytest.approx(ledger.coverage)
        means = [device.mean_pct or 0 for device in ledger.devices]
        assert gpus_used == sum(mean > 0 for mean in means)
        assert active == max(sum(mean >= 5 for mean in means), min(gpus_used, 1))
        assert at > T0


def test_what_the_ledger_said_is_known_from_then_on() -> None:
    """Use is known when the hub learned the last of it, or at the run's end where that is later; else not at all."""
    store = HubStore.open(":memory:", SystemClock())
    late = replace(RUN, job_id=8, start=2**33, end=2**33 + 1000)
    shared, running = replace(RUN, job_id=9), replace(RUN, job_id=10, end=None, state="RUNNING")
    upsert_jobs(store, [RUN, late, shared, running])
    upsert_hours(store, [hour_of(job, 0, {50: 500}) for job in (RUN, late, running)])
    upsert_hours(store, [hour_of(shared, 0, {50: 500}, share=0.5)])
    assert used(store, RUN)[:3] == [0.5, 1, 0.25]
    told = {(e.kind, e.run_key.job_id): e for e in history_events(store, 0, 99)}
    assert used(store, RUN)[3] == told["ledger", 7].at_utc
    assert used(store, late)[3] == late.end
    assert np.isnan(used(store, shared)[:3]).all()
    assert np.isnan(used(store, running)[:3]).all()
    use = told["ended", 7].use
    assert use is not None
    with store.reader() as db:
        found = read_table(db, "gw").table.take(np.array([0]))
    known = GpuUse(use.used_ratio, use.gpus_active, use.coverage, told["ledger", 7].at_utc, use.gpus_used)
    assert_equal(found, table_of([RUN], use=[known]))
    assert told["ledger", 7].use == use
    assert (told["started", 7].use, told["ended", 9].use, told["ledger", 10].use) == (None, None, None)


def test_a_snapshot_names_the_last_event_it_has(tmp_path: Path) -> None:
    """A reader goes on after it; another cluster's runs are in none of the columns."""
    store = HubStore.open(tmp_path / "hub.duckdb", SystemClock())
    upsert_jobs(store, [RUN, replace(RUN, cluster="other", job_id=99)])
    with store.reader() as db:
        snapshot = read_table(db, "gw")
        assert snapshot.last_event == history_events(store, 0, 99)[-1].seq
        assert snapshot.table.job_id.tolist() == [7]
        assert len(read_table(db, "nobody").table) == 0
        assert db.execute("SELECT count(*) FROM duckdb_tables() WHERE table_name LIKE 'picked%'").fetchone() == (0,)
    store.close()
