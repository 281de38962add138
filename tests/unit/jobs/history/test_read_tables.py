"""A history told in tables, one after the other, is the history told at once."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.unit.jobs.history.contents import content, known

from gpuwaste.core.clock import SystemClock
from gpuwaste.core.underuse import UNDER_USE
from gpuwaste.jobs.history.from_store import TableSnapshot, read_table, read_tables
from gpuwaste.jobs.history.history_follower import Follower
from gpuwaste.jobs.history.history_replay import replay
from gpuwaste.jobs.history.history_state import HistoryState
from gpuwaste.jobs.history.job_table import JobTable, known_at
from gpuwaste.jobs.run_store import history_events, upsert_jobs
from gpuwaste.ledger.hour import AllocationHour
from gpuwaste.ledger.hour_store import upsert_hours
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.testing.histories import made_table

T0 = 1_700_000_000 // 3600 * 3600
EVER = -(2**53)


OpenRuns = Callable[[], Mapping[Any, Any]]


def in_tables(table: JobTable, bounds: list[int], open_runs: OpenRuns) -> Iterator[TableSnapshot]:
    """Yield a table as it stood at each bound, with what is open or was submitted since the one before."""
    for since, until in zip([EVER, *bounds], [*bounds, 2**53], strict=True):
        held = open_runs()
        rows = [
            row
            for row, run in enumerate(zip(table.job_id.tolist(), table.submit.tolist(), strict=True))
            if run[1] >= since or run in held
        ]
        yield TableSnapshot(known_at(table.take(np.array(rows, dtype=np.intp)), until), 7, since)


def told(snapshots: Callable[[OpenRuns], Iterator[TableSnapshot]], **limits: int) -> Follower:
    """Return a follower that was told tables as the hub tells them at its start."""
    follower = Follower(HistoryState(), "gw", **limits)
    for snapshot in snapshots(lambda: follower.state.open):
        follower.state = replay(snapshot.table, follower.state)
        follower.boot(snapshot)
    return follower


@settings(max_examples=examples(60), deadline=None)
@given(
    seed=st.integers(0, 10**6),
    users=st.sampled_from([1, 5, 40]),
    gap=st.sampled_from([3.0, 40.0, 900.0]),
    shares=st.lists(st.floats(0, 1) | st.just(1.0), max_size=5),
    ended=st.sampled_from([1, 5, 200_000]),
)
def test_tables_one_after_the_other_are_one(seed: int, users: int, gap: float, shares: list[float], ended: int) -> None:
    """Whatever the instants at which a history is cut, keys, last runs, open and ended runs are those of one table."""
    table = made_table(150, users=users, seed=seed, gap_s=gap)
    first, last = int(table.submit[0]), int(table.end.max())
    bounds = sorted({first + int(share * (last + 1 - first)) for share in shares})
    parts = told(lambda runs: in_tables(table, bounds, runs), max_ended=ended)
    assert known(parts) == known(told(lambda runs: in_tables(table, [], runs), max_ended=ended))


@pytest.mark.parametrize("share", [0.1, 0.5, 1.0])
def test_instants_in_no_order(share: float) -> None:
    """Runs that end before their start, or start before their submission, are cut where replay has their events."""
    table = made_table(300, users=10, seed=3, gap_s=40.0)
    table.end[::7] = np.where(table.end[::7] >= 0, table.submit[::7] - 5000, table.end[::7])
    table.start[::5] = np.where(table.start[::5] >= 0, table.submit[::5] - 100, table.start[::5])
    bound = int(table.submit[int(share * (len(table) - 1))]) + 1
    parts, whole = told(lambda runs: in_tables(table, [bound], runs)), told(lambda runs: in_tables(table, [], runs))
    assert content(parts.state)[:3] == content(whole.state)[:3]


@pytest.fixture(scope="module")
def site() -> Iterator[HubStore]:
    """Yield a store with runs of ten hours, some with GPUs, of which the hub learns soon, late or never."""
    store, rng = HubStore.open(":memory:", SystemClock()), np.random.default_rng(5)
    jobs: list[JobRecord] = []
    hours: list[AllocationHour] = []
    for number in range(120):
        submit = T0 + int(rng.integers(0, 36_000))
        start, took = submit + int(rng.integers(0, 3000)), int(rng.integers(60, 9000))
        ended, began = number % 11 != 0, number % 13 != 0
        job = JobRecord(
            "gw", number + 1, submit, user=f"u{number % 5}", name=f"n{number % 3}", gpus=number % 3,
            req_tres=f"cpu=2,node=1,gres/gpu={number % 3}", start=start if began else None,
            end=start + took if ended else None, elapsed_s=took if ended and began else None,
            state=("COMPLETED", "FAILED")[number % 2] if ended and began else "CANCELLED" if ended else "RUNNING",
        )  # fmt: skip
        jobs.append(job)
        if began and number % 3 and number % 4:
            ms = 1000 * start
            hour = AllocationHour(
                job.run_key, "gpu1", "GPU-1", start - start % 3600, 1, ms, ms + 1000 * took, final=True,
                util_ms={number % 100: 1000 * took},
            )  # fmt: skip
            hours += [hour, replace(hour, gpu_uuid="GPU-2")][: number % 3]
    upsert_jobs(store, jobs)
    upsert_hours(store, hours)
    # The hub has learned all of it today; of half of the runs it is to have done so some hours after their start.
    with store.writing() as db:
        db.execute(
            "UPDATE events SET at_utc = run_start + 3600 * (job_id % 7) WHERE kind = 'ledger' AND job_id % 2 = 0"
        )
    yield store
    store.close()


@pytest.mark.parametrize("most", [1, 10, 50])
def test_a_store_is_read_in_tables(site: HubStore, most: int) -> None:
    """However few runs a table of the store has, all that is known at the end is what one table of all runs says."""
    with site.reader() as db:
        sizes: list[int] = []

        def counted(runs: OpenRuns) -> Iterator[TableSnapshot]:
            for snapshot in read_tables(db, "gw", UNDER_USE, runs, most):
                sizes.append(len(snapshot.table))
                yield snapshot

        parts, whole = told(counted), told(lambda _: iter([read_table(db, "gw", UNDER_USE)]))
    assert len(sizes) >= 3
    assert max(sizes) < 120
    assert any(use for use in whole._ended.values())
    assert known(parts) == known(whole)


def test_a_store_without_runs_is_one_table(site: HubStore) -> None:
    """A cluster that nobody knows has an empty history, and the stream goes on after the newest event."""
    with site.reader() as db:
        (snapshot,) = read_tables(db, "nobody", UNDER_USE, dict)
    assert len(snapshot.table) == 0
    assert snapshot.last_event == history_events(site, 0, 10**6)[-1].seq
