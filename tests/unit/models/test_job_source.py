"""Where training's jobs come from: a store's file and the hub that holds it tell the same."""

import json
import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest
from tests.unit.jobs.history.test_follow import T0, some_jobs
from tests.unit.jobs.history.test_from_store import assert_equal, hour_of

from gpuwaste.core.clock import SystemClock
from gpuwaste.core.errors import NoDataError, RetryableWireError, StoreError, UsageError, WireError
from gpuwaste.core.scope import Scope
from gpuwaste.jobs.history.from_store import read_table
from gpuwaste.jobs.history_resource import HistoryQuestion
from gpuwaste.jobs.history_resource import history as history_of
from gpuwaste.jobs.importers.history_store import HistoryStore
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.ledger.hour_store import upsert_hours
from gpuwaste.models import job_source as source
from gpuwaste.models.job_source import load_hub, load_source, load_store
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.testing.memory_hub import MemoryHub, Parameters

P = TypeVar("P")


class StoreReading:
    """A hub that has a store alone."""

    def __init__(self, store: HubStore) -> None:
        self._store = store

    def now(self) -> int:
        """Return UTC seconds."""
        return SystemClock().utc_s()

    def get(self, kind: type[P]) -> P:
        """Return the store."""
        assert isinstance(self._store, kind)
        return self._store


def direct_hub(store: HubStore, change: Mapping[str, Any] | None = None) -> MemoryHub:
    """Return a hub with GET /v1/history of a store for an operator, its answers through JSON as on the wire."""
    reading = StoreReading(store)

    def history(params: Parameters) -> dict[str, Any]:
        found = history_of(
            reading, Scope("oper", everything=True), HistoryQuestion(int(params["after"]), int(params["limit"]))
        )
        answer: dict[str, Any] = json.loads(json.dumps({**found, **(change or {})}))
        return answer

    return MemoryHub({"/v1/history": history})


def filled(path: Path) -> HubStore:
    """Return a store with ended, running and waiting runs, some with hours."""
    store = HubStore.open(path, SystemClock())
    jobs, _ = some_jobs(120, 11)
    rng = random.Random(1)
    waits = [replace(job, job_id=900 + n, start=None, end=None, state="PENDING") for n, job in enumerate(jobs[:5])]
    runs = [replace(job, job_id=950 + n, end=None, state="RUNNING") for n, job in enumerate(jobs[:5]) if job.start]
    rng.shuffle(jobs)
    upsert_jobs(store, [*jobs, *waits, *runs])
    upsert_jobs(store, [replace(waits[0], start=T0 + 10**6, state="RUNNING")])
    used = [job for job in jobs if job.gpus and job.start is not None and rng.random() < 0.8]
    upsert_hours(
        store, [hour_of(job, gpu, {0: 1, 50: rng.randint(1, 9)}) for job in used for gpu in range(job.gpus or 0)]
    )
    return store


def test_file_and_hub_tell_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table of the store's file equals the one that is put together from pages of the hub's history."""
    store = filled(tmp_path / "hub.duckdb")
    monkeypatch.setattr(source, "PAGE", 50)
    hub, told = direct_hub(store), list[int]()
    through = load_hub(hub, progress=told.append)
    assert len(hub.asked) > 4
    assert sum(told) == store.counts()["events"]
    with store.reader() as db:
        direct = read_table(db, "gw").table
    store.close()
    assert_equal(through.table, direct)
    file = load_store(tmp_path / "hub.duckdb")
    assert_equal(file.table, direct)
    assert (file.cluster, file.text, through.text) == ("gw", "hub.duckdb, cluster gw", "the hub's history, cluster gw")
    assert np.isfinite(direct.used_ratio).sum() > 10


def test_the_hub_that_holds_the_file_is_asked(tmp_path: Path) -> None:
    """Where another process has the file, the same jobs come through the hub; where that fails too, both are named."""
    path = tmp_path / "hub.duckdb"
    store = filled(path)
    dead = MemoryHub({"/v1/history": RetryableWireError("/v1/history: is the hub running?")})
    assert len(load_source(path, direct_hub(store)).table) == len(load_source(None, direct_hub(store)).table) > 100
    with pytest.raises(StoreError, match=r"hub\.duckdb.*and not through the hub: /v1/history"):
        load_source(path, dead)
    with pytest.raises(WireError):
        load_source(None, dead)
    with pytest.raises(StoreError, match=r"hub\.duckdb"):
        load_source(path)
    store.close()


def test_reading_a_store_changes_nothing(tmp_path: Path) -> None:
    """The file is opened for reading only, byte for byte as it was after it."""
    path = tmp_path / "hub.duckdb"
    filled(path).close()
    before = path.read_bytes()
    path.chmod(0o400)
    load_store(path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["hub.duckdb"]


def test_how_ends_are_known_comes_with_an_import(tmp_path: Path) -> None:
    """A cluster whose newest import was of a log without waits says so in its table; others are accounting's."""
    path = tmp_path / "hub.duckdb"
    history, jobs = HistoryStore.open(path, SystemClock()), some_jobs(4, 3)[0]
    for rule in ("accounting", "submit + run"):
        history.end(history.begin("swf", "swf:log", "atlas", {}), rule)
    history.begin("swf", "swf:log", "atlas", {})  # cut off
    history.close()
    store = HubStore.open(path, SystemClock())
    upsert_jobs(store, [*jobs, *(replace(job, cluster="atlas") for job in jobs)])
    store.close()
    assert [load_store(path, name).table.end_rule for name in ("atlas", "gw")] == ["submit + run", "accounting"]


def test_several_clusters_have_to_be_chosen_from(tmp_path: Path) -> None:
    """A store of one cluster needs no name; of two the caller says which, by a name that is there."""
    path = tmp_path / "hub.duckdb"
    store = HubStore.open(path, SystemClock())
    jobs, _ = some_jobs(10, 3)
    upsert_jobs(store, [*jobs, *(replace(job, cluster="two") for job in jobs[:4])])
    hub = direct_hub(store)
    with pytest.raises(UsageError, match="gw, two"):
        load_hub(hub)
    with pytest.raises(NoDataError, match="three"):
        load_hub(hub, "three")
    assert len(load_hub(hub, "two").table) == 4
    store.close()
    with pytest.raises(UsageError, match="gw, two"):
        load_store(path)
    assert len(load_source(path, cluster="two").table) == 4
    with pytest.raises(NoDataError, match="three"):
        load_source(path, cluster="three")


def test_nothing_to_learn_from_is_one_error(tmp_path: Path) -> None:
    """No file, and a store without jobs, say so in one line with exit code 3."""
    HubStore.open(tmp_path / "empty.duckdb", SystemClock()).close()
    empty = HubStore.open(":memory:", SystemClock())
    for store, hub in (("none.duckdb", None), (None, None), ("empty.duckdb", None), (None, direct_hub(empty))):
        with pytest.raises(NoDataError) as caught:
            load_source(None if store is None else tmp_path / store, hub)
        assert "\n" not in str(caught.value)
        assert caught.value.exit_code == 3


@pytest.mark.parametrize("change", [{"events": 7}, {"next": None}, {"events": [7]}, {"events": [{"kind": "started"}]}])
def test_an_answer_that_is_no_history_is_one_error(change: dict[str, Any]) -> None:
    """A page of another shape ends the reading with the wire's error."""
    with pytest.raises(WireError, match="history"):
        load_hub(direct_hub(HubStore.open(":memory:", SystemClock()), change))
