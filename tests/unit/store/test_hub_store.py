"""The hub's store: each key once, the highest seq wins, whatever the order, and on disk when it says so."""

import random
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples

from gpuwaste.core.clock import SystemClock
from gpuwaste.core.errors import StoreError
from gpuwaste.jobs.run_store import history_events, runs_of_id, set_partitions, upsert_jobs
from gpuwaste.ledger.hour import AllocationHour
from gpuwaste.ledger.hour_store import upsert_hours
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.store.hub.hub_store import Aside, HubStore

HOUR = 1_700_000_000 // 3600 * 3600


def hour(seq: int, job: int = 7, *, final: bool = False, at: int = 0) -> AllocationHour:
    """Return a row whose content tells its seq."""
    start = HOUR + at * 3600
    ms = start * 1000
    return AllocationHour(
        RunKey("gw", job, HOUR), "gpu1", "GPU-a", start, seq, ms, ms + 3_600_000, final=final,
        util_ms={0: seq % 1000, 100: 5}, unknown_ms={"gap": seq % 1000},
    )  # fmt: skip


def stored(store: HubStore) -> list[tuple[int, int, int, bool, list[int], list[int]]]:
    with store.reader() as db:
        return db.execute(
            "SELECT job_id, hour_utc, seq, final, util_ms, unknown_ms FROM hours ORDER BY job_id, hour_utc"
        ).fetchall()


def new_store() -> HubStore:
    return HubStore.open(":memory:", SystemClock())


@settings(max_examples=examples(40), deadline=None)
@given(
    rows=st.lists(st.tuples(st.integers(1, 3), st.integers(0, 2), st.integers(0, 9), st.booleans()), max_size=30),
    seed=st.integers(0, 999),
)
def test_any_order_and_any_cut_into_batches_give_the_same_rows(
    rows: list[tuple[int, int, int, bool]], seed: int
) -> None:
    """Rows in any order, repeated, cut into any batches, leave the highest seq of each key, final if any was."""
    hours = [hour(seq, job, final=final, at=at) for job, at, seq, final in rows]
    expected: dict[tuple[int, int], tuple[int, bool]] = {}
    for row in hours:
        seq, final = expected.get((row.run_key.job_id, row.hour_utc), (-1, False))
        expected[row.run_key.job_id, row.hour_utc] = (max(seq, row.seq), final or row.final)
    rng = random.Random(seed)
    sent = [*hours, *hours]
    rng.shuffle(sent)
    store = new_store()
    while sent:
        size = rng.randint(1, 8)
        upsert_hours(store, sent[:size])
        sent = sent[size:]
    assert [(j, h, s, f) for j, h, s, f, _, _ in stored(store)] == [(*k, *v) for k, v in sorted(expected.items())]
    assert all((u[0], g[0]) == (s, s) for _, _, s, _, u, g in stored(store))
    store.close()


def test_the_limits_of_a_row_are_kept() -> None:
    """The largest values that the wire allows come back as they went in."""
    store = new_store()
    top = replace(
        hour(2**63 - 1, 2**32 - 1), mem_max_b=2**63 - 1, energy_j=1e-300, util_ms=dict.fromkeys(range(101), 9)
    )
    assert upsert_hours(store, [top]) == 1
    with store.reader() as db:
        row = db.execute("SELECT seq, job_id, mem_max_b, energy_j, len(pct) FROM hours").fetchone()
    assert row == (2**63 - 1, 2**32 - 1, 2**63 - 1, 1e-300, 101)


def test_final_rows_are_told_in_the_history() -> None:
    """A run gets one ledger event for each batch that made an hour final or corrected one, and none for a repeat."""
    store = new_store()
    for rows in ([hour(1)], [hour(2, final=True), hour(2, at=1, final=True)], [hour(2, final=True)], [hour(3)]):
        upsert_hours(store, rows)
    assert [(e.kind, e.run_key.job_id) for e in history_events(store, 0, 9)] == [("ledger", 7), ("ledger", 7)]


def test_names_of_any_kind_are_kept() -> None:
    """Newlines, quotes, 4-byte UTF-8, NUL, half a surrogate pair and 10 kB do not break an import."""
    store = new_store()
    names = ["a\nb", "'; DROP TABLE jobs; --", '"\\', "\U0001f600", "nul\0", "half\ud800", "x" * 10_000, ""]
    upsert_jobs(store, [JobRecord("gw", i, 900, name=name) for i, name in enumerate(names, 1)])
    found = [runs_of_id(store, "gw", i)[0].name for i in range(1, len(names) + 1)]
    assert found == [*names[:4], "nul\\x00", "half\\ud800", *names[6:]]
    assert upsert_jobs(store, [JobRecord("gw", i, 900, name=name) for i, name in enumerate(names, 1)]) == 0


def test_an_import_that_brings_nothing_new_writes_nothing() -> None:
    """The same runs again change no row and tell no event."""
    store = new_store()
    jobs = [JobRecord("gw", i, 900, start=1000, end=1000 + i, state="COMPLETED", total_cpu_s=0.1) for i in range(1, 50)]
    assert (upsert_jobs(store, jobs), upsert_jobs(store, jobs), len(history_events(store, 0, 999))) == (49, 0, 98)


def test_a_window_without_a_run_s_steps_does_not_forget_them() -> None:
    """A run is told again without the steps that lie before its window: peak memory and processor time stay."""
    store = new_store()
    whole = JobRecord(
        "c", 7, 100, "7", start=100, end=4000, elapsed_s=3900, state="COMPLETED", max_rss_b=5, total_cpu_s=9.0
    )
    upsert_jobs(store, [whole])
    assert upsert_jobs(store, [replace(whole, max_rss_b=None, total_cpu_s=0.0)]) == 0
    assert runs_of_id(store, "c", 7) == [whole]


def test_two_ended_runs_of_one_submission_are_two() -> None:
    """A requeue may keep the submission: the run that comes later does not take the ended one's place."""
    store = new_store()
    first = JobRecord("c", 7, 100, "7", start=110, end=120, elapsed_s=10, state="REQUEUED")
    second = JobRecord("c", 7, 100, "7", start=200, end=300, elapsed_s=100, state="COMPLETED")
    upsert_jobs(store, [first])
    upsert_jobs(store, [second])
    assert runs_of_id(store, "c", 7) == [second, first]


def test_marks_partitions_and_quarantine() -> None:
    """Small tables: a mark is replaced, partitions are replaced as a whole, a bad row is kept once."""
    store = new_store()
    assert store.mark("k") is None
    store.set_mark("k", 1)
    store.set_mark("k", 2)
    set_partitions(store, "gw", {"a": True, "b": False})
    set_partitions(store, "gw", {"b": True})
    assert store.mark("k") == 2
    assert [store.quarantine("sacct", [Aside(n, "why", "raw")]) for n in (1, 2)] == [1, 0]
    assert store.counts()["quarantine"] == 1


def test_a_corrupt_store_is_refused(tmp_path: Path) -> None:
    """A file that is no store is one error with its path."""
    path = tmp_path / "hub.duckdb"
    path.write_bytes(b"\xff\x00garbage" * 1000)
    with pytest.raises(StoreError, match=r"hub\.duckdb"):
        HubStore.open(path, SystemClock())
