"""A compromised node with a good credential: what it can make the hub keep is bounded, and goes away again."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.integration.hub.rig import Rig, running_hub

from gpuwaste.core.units import DAY_S
from gpuwaste.hub.ingest import MAX_NODES, BatchCounts
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.ledger.hour import AllocationHour
from gpuwaste.ledger.hour_store import upsert_hours
from gpuwaste.ledger.unaccounted import MOST_GPUS, Unaccounted, UnaccountedStore
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.testing.clocks import FakeClock, ShiftedClock
from gpuwaste.testing.hub_rows import HOUR, batch, hour, record


def test_names_that_a_node_makes_up_are_bounded_on_metrics() -> None:
    """Without check_origin an agent may name any node: no more than so many have a series, and the newest stay."""
    counts = BatchCounts(FakeClock())
    for number in range(MAX_NODES + 100):
        counts.batch(f"made-up-{number}", 1, 1, 0)
        counts.batch("honest", 1, 1, 0)
    ages = counts.batch_ages_s()
    assert len(ages) == MAX_NODES
    assert {"honest", f"made-up-{MAX_NODES + 99}"} <= set(ages)


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Rig]:
    """Run a hub that keeps hours without accounting for 30 days, 300 of each node, at the time of rig's hours."""
    clock = ShiftedClock(HOUR + 7200)
    with running_hub(tmp_path, clock=clock, unaccounted_days=30) as rig:
        rig.hub.get(Unaccounted).most_rows = 300
        yield rig


def at(job: int, hour_utc: int, **more: Any) -> AllocationHour:
    """Return half an hour of a run that began when its hour did."""
    times = {"hour_utc": hour_utc, "t0_ms": hour_utc * 1000, "t1_ms": hour_utc * 1000 + 1_800_000}
    return hour(job, **{"run_key": RunKey("gw", job, hour_utc), **times, **more})


def test_ancient_hours_of_unknown_runs_are_rejected_with_the_reason(hub: Rig) -> None:
    """Back to 2000, or before their own run: named by line, not stored; what accounting has is taken at any age."""
    day = HOUR // DAY_S * DAY_S
    upsert_jobs(hub.store, [record(5, "alice", start=day - 400 * DAY_S, end=day - 399 * DAY_S)])
    rows = [
        at(1, 946_684_800),
        at(2, day - 31 * DAY_S),
        at(3, day - 28 * DAY_S),
        hour(4, run_key=RunKey("gw", 4, HOUR + 2 * DAY_S)),
        at(5, day - 400 * DAY_S),
    ]
    answer = hub.post(batch(*rows))
    rejected = {entry["line"]: entry["reason"] for entry in answer.json["rejected"]}
    assert (answer.status, answer.json["accepted"], sorted(rejected)) == (200, 2, [2, 3, 5])
    assert "older than 30 days, and accounting has no run gw/1@946684800: see [hub] unaccounted_days" in rejected[2]
    assert "before the start of its run" in rejected[5]
    assert [row["job_id"] for row in hub.hours()] == [3, 5]


def test_a_seq_that_nothing_could_ever_correct_is_rejected(hub: Rig) -> None:
    """2^63-1 is no count of an agent's: the row is named, and an honest one of the same hour is taken later."""
    answer = hub.post(batch(hour(7)).replace(b'"seq":1', b'"seq":9223372036854775807'))
    assert "seq" in answer.json["rejected"][0]["reason"]
    assert hub.post(batch(hour(7, seq=2))).json["accepted"] == 1
    assert [row["seq"] for row in hub.hours()] == [2]


def test_a_node_fills_its_own_quota_and_nobody_else_s(hub: Rig) -> None:
    """Thousands of made-up runs: what is stored is bounded, the rest has to wait, and other nodes' hours are taken."""
    statuses = []
    for first in range(1, 2001, 100):
        answer = hub.post(batch(*(at(job, HOUR) for job in range(first, first + 100))))
        statuses.append(answer.status)
    assert statuses == [200] * 3 + [503] * 17
    assert "hour rows of runs that are missing in accounting" in answer.json["error"]
    assert int(answer.headers["retry-after"]) >= 60
    assert len(hub.hours()) == 300
    assert hub.post(batch(at(1, HOUR, node="gpu2"), node="gpu2"), origin="10.0.0.2").json["accepted"] == 1
    upsert_jobs(hub.store, [record(5001, "alice", start=HOUR, end=HOUR + 1800)])
    assert hub.post(batch(at(5001, HOUR))).json["accepted"] == 1


def test_hours_that_come_before_accounting_are_kept_and_free_the_quota(hub: Rig) -> None:
    """A node without slurmdbd for long: its quota is full, then accounting tells its runs, and the rest is taken."""
    honest = [at(job, HOUR) for job in range(1, 401)]
    assert hub.post(batch(*honest[:300])).json["accepted"] == 300
    assert hub.post(batch(*honest[300:])).status == 503
    upsert_jobs(hub.store, [record(job, "alice", start=HOUR, end=None) for job in range(1, 401)])
    assert hub.post(batch(*honest[300:])).json["accepted"] == 100
    assert [row["job_id"] for row in hub.hours()] == list(range(1, 401))


def test_runs_that_were_elsewhere_or_over_take_no_hours(hub: Rig) -> None:
    """What accounting has settled otherwise is rejected by line; what it may still settle counts for the quota."""
    day = HOUR // DAY_S * DAY_S
    upsert_jobs(
        hub.store,
        [
            record(1, "alice", start=day - 9 * DAY_S, end=day - 8 * DAY_S, nodes="gpu[2-9]"),
            record(2, "alice", start=day - 9 * DAY_S, end=day - 8 * DAY_S),
            record(3, "alice", start=day, end=None, nodes="None assigned"),
        ],
    )
    over = at(2, day - 5 * DAY_S, run_key=RunKey("gw", 2, day - 9 * DAY_S))
    answer = hub.post(batch(at(1, day - 9 * DAY_S), over, at(3, day)))
    rejected = {entry["line"]: entry["reason"] for entry in answer.json["rejected"]}
    assert rejected == {
        2: f"accounting has gw/1@{day - 9 * DAY_S} on other nodes",
        3: f"hour {day - 5 * DAY_S} is more than a day after the end of gw/2@{day - 9 * DAY_S}, {day - 8 * DAY_S}",
    }
    assert [row["job_id"] for row in hub.hours()] == [3]


def test_gpus_that_a_node_makes_up_are_bounded(hub: Rig) -> None:
    """A run whose GPUs accounting does not count is no way to rows without end: a node has so many GPUs, no more."""
    upsert_jobs(hub.store, [replace(record(7, "alice", start=HOUR, end=None), gpus=None)])
    taken = 0
    for first in range(0, 3000, 500):
        answer = hub.post(batch(*(at(7, HOUR, gpu_uuid=f"GPU-{number}") for number in range(first, first + 500))))
        taken += answer.json["accepted"]
    assert taken == len(hub.hours()) == MOST_GPUS
    assert f"more than {MOST_GPUS} GPUs" in answer.json["rejected"][0]["reason"]


def test_what_accounting_never_tells_is_pruned_and_nothing_else(tmp_path: Path) -> None:
    """Only once accounting was read for so long after the hour; hours of known runs and young ones stay."""
    clock = FakeClock(HOUR)
    store = HubStore.open(tmp_path / "hub.duckdb", clock)
    upsert_jobs(store, [record(1, "alice")])
    upsert_hours(store, [hour(1), hour(2), at(3, HOUR + 20 * DAY_S)])
    unaccounted = Unaccounted(UnaccountedStore(store), clock, 30)
    clock.advance(40 * DAY_S)
    for read_until in (None, HOUR, HOUR + 30 * DAY_S):
        unaccounted.step(read_until)
        assert store.counts()["hours"] == 3
    clock.advance(DAY_S)
    unaccounted.step(HOUR + 41 * DAY_S)
    with store.reader() as db:
        assert [row[0] for row in db.execute("SELECT job_id FROM hours ORDER BY job_id").fetchall()] == [1, 3]
    store.close()
