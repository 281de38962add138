"""A hub on a lake whose PostgreSQL is far away or whose disks are full: what it stores and reports is a file hub's."""

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.integration.hub.test_several_hubs import holds
from tests.integration.small_disk import disk_of

from gpuwaste.core.clock import SystemClock
from gpuwaste.core.errors import RetryableWireError
from gpuwaste.core.units import HOUR_S
from gpuwaste.jobs.job_event import event_from_json
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.ledger.hour import AllocationHour, HourBatch, encode_hour
from gpuwaste.net.batch import Batch, Envelope
from gpuwaste.net.hub_client import HubClient
from gpuwaste.net.munge_credentials import Munge, MungeIssuer
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.store.hub.lake_store import LakeReader, LakeStore
from gpuwaste.store.lake_database import LakeLocation
from gpuwaste.testing.cluster_process import wait_until
from gpuwaste.testing.fleet_rows import CLUSTER, START, jobs_of, node_name, rows_of_hour
from gpuwaste.testing.lone_hub import LoneHub, munged_path
from gpuwaste.testing.postgres_server import PostgresServer
from gpuwaste.testing.slow_link import SlowLink

pytestmark = [
    pytest.mark.long,
    pytest.mark.sockets,
    pytest.mark.timeout(600),  # several hubs, and batches that take seconds
    pytest.mark.skipif(munged_path() is None, reason="munged is not installed (Debian: munge)"),
]
NODES, HOURS, HOURS_OF_BATCH = 3, 24, 8
STEP_S = 240  # for what a hub does by itself, on a host that does other things too
FAR_S = 0.025  # one way; 50 ms there and back
TABLES = ("hours", "jobs")
NodeBatch = tuple[int, HourBatch]


@cache
def rows_of(node: int, first: int) -> tuple[AllocationHour, ...]:
    """Return the rows of a node's hours from number `first` on, as many as a batch has."""
    return tuple(
        row for hour in range(first, first + HOURS_OF_BATCH) for row in rows_of_hour(node, hour, 1, final=True)
    )


def batches() -> Iterator[NodeBatch]:
    """Yield what the nodes send, in the order of time."""
    for first in range(0, HOURS, HOURS_OF_BATCH):
        for node in range(NODES):
            yield node, Batch(tuple(map(encode_hour, rows_of(node, first))))


def runs() -> list[JobRecord]:
    """Return the ended runs that the rows belong to."""
    found = []
    for node in range(NODES):
        ends: dict[Any, int] = {}
        for first in range(0, HOURS, HOURS_OF_BATCH):
            for row in rows_of(node, first):
                ends[row.run_key] = max(ends.get(row.run_key, 0), row.t1_ms // 1000)
        for run in jobs_of(node, HOURS):
            end = ends[run.run_key]
            found.append(replace(run, end=end, elapsed_s=end - run.run_key.start, state="COMPLETED"))
    return found


class Sites:
    """A folder for hubs that are told the same: some on a lake, one with a file."""

    def __init__(self, directory: Path, munge: str, postgres: PostgresServer) -> None:
        self.directory = directory
        self._munge = munge
        self.data = directory / "lake"
        self.location = LakeLocation(postgres.new_database(), self.data)
        self._hubs: list[LoneHub] = []

    def lake(self, name: str = "a", catalog: str = "") -> LoneHub:
        """Make a hub on the lake; `catalog` is another way to its catalog."""
        keys = {"lake_catalog": catalog or self.location.catalog, "lake_data": str(self.data)}
        return self._hub(name, {"store": "lake", **keys})

    def file(self) -> LoneHub:
        """Run a hub with a file that knows the runs."""
        hub = self._hub("file", {})
        store = HubStore.open(hub.directory / "state" / "hub.duckdb", SystemClock())
        upsert_jobs(store, runs())
        store.close()
        hub.start()
        return hub

    def make_lake(self) -> None:
        """Make the lake with the runs."""
        self.data.mkdir(exist_ok=True)
        store = LakeStore.open_lake(self.location, SystemClock(), self.directory)
        upsert_jobs(store, runs())
        store.close()

    def stop(self) -> None:
        """End the hubs."""
        for hub in self._hubs:
            hub.stop()

    def _hub(self, name: str, keys: Mapping[str, Any]) -> LoneHub:
        (self.directory / name).mkdir(exist_ok=True)
        hub = LoneHub(self.directory / name, self._munge, {"staff_groups": ["root"], "rollup_days": 0, **keys})
        self._hubs.append(hub)
        return hub


@pytest.fixture
def sites(tmp_path: Path, munge: str, postgres: PostgresServer) -> Iterator[Sites]:
    made = Sites(tmp_path, munge, postgres)
    yield made
    made.stop()


def agents(*hubs: LoneHub) -> HubClient:
    """Return an agent that knows these hubs."""
    issuer = MungeIssuer(Munge(hubs[0].munge_socket), hub_uid=os.geteuid())
    return HubClient(" ".join(hub.url for hub in hubs), issuer, timeout_s=STEP_S)


def send(client: HubClient, one: NodeBatch) -> int:
    """Send a batch, once; returns the rows that were acknowledged."""
    node, batch = one
    return client.post_hours(Envelope(CLUSTER, node_name(node), "boot", "0"), batch).accepted


def ship(client: HubClient, one: NodeBatch) -> None:
    """Send a batch until it is acknowledged, as an agent's outbox does."""

    def sent() -> bool:
        with contextlib.suppress(RetryableWireError):
            return send(client, one) == len(one[1].rows)
        return False

    wait_until(sent, STEP_S, "a hub to take a batch", poll_s=0.2)


def told(hub: LoneHub) -> dict[str, Any]:
    """Return what a hub reports: of all, of a user, of each run, and the events of its runs without their instants."""
    client, window = agents(hub), {"start": START, "end": START + HOURS * HOUR_S}
    found: dict[str, Any] = {
        name: client.get("/v1/report", {**window, **question})
        for name, question in {"all": {"cluster": CLUSTER}, "user": {"user": "u1"}}.items()
    }
    for run in runs()[::5]:
        found[f"job {run.job_id}"] = client.get(f"/v1/jobs/{run.job_id}")
    for document in found.values():
        document.pop("generated", None)
    # Rows of a run that are committed together are one event.
    found["events"] = sorted({str(replace(one, seq=0, at_utc=0)) for one in client.history(0, 5000, event_from_json)})
    return found


def kept(store: HubStore) -> dict[str, list[Any]]:
    """Return the rows of tables, and close the store."""
    with contextlib.closing(store), store.reader() as db:
        return {name: db.execute(f"SELECT * FROM {name} ORDER BY ALL").fetchall() for name in TABLES}  # noqa: S608


def assert_same(sites: Sites, lake: LoneHub, file: LoneHub) -> None:
    """Compare what two hubs tell, then stop them and compare the rows that they have stored."""
    here, there = told(lake), told(file)
    for name, answer in there.items():
        assert here[name] == answer, name
    lake.stop()
    file.stop()
    stored = kept(LakeReader.open_lake(sites.location, SystemClock(), sites.directory))
    expected = kept(HubStore.open(file.directory / "state" / "hub.duckdb", SystemClock()))
    assert len(expected["hours"]) == NODES * HOURS * 8
    for name in TABLES:
        assert stored[name] == expected[name], name


def test_a_catalog_that_is_far_away(sites: Sites, postgres: PostgresServer) -> None:
    """50 ms to PostgreSQL: two hubs take all, and one that is killed is replaced; no row is lost or twice."""
    sites.make_lake()
    file = sites.file()
    with SlowLink(postgres.socket, FAR_S) as link:
        far = sites.location.catalog.replace(f"host={postgres.directory}", f"host=127.0.0.1 port={link.port}")
        first, second = sites.lake("a", far), sites.lake("b", far)
        first.start()
        second.stand_by()
        client = agents(first, second)
        every = list(batches())
        for one in every[: len(every) // 2]:
            ship(client, one)
        assert [hub.words("lake-lease-unknown") + hub.words("hub-lost-lake") for hub in (first, second)] == [0, 0]
        first.kill()
        for one in every[len(every) // 2 - 1 :]:
            ship(client, one)
        for one in every:
            ship(agents(file), one)
        wait_until(second.serves, STEP_S, "the other hub to serve")
        holds(second, NODES * HOURS * 8)
        assert_same(sites, second, file)


def fill(disk: Path) -> Path:
    """Write a file until there is no room; return it."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file, pytest.raises(OSError, match="No space left"):
        while True:
            file.write(bytes(4096))
    return ballast


def test_a_full_disk_under_the_files_of_a_lake(sites: Sites) -> None:
    """A batch is refused and the reports are of those before it; with room again all are taken, without a restart."""
    every = list(batches())
    with disk_of(sites.data, "16m") as disk:
        sites.make_lake()
        file, lake = sites.file(), sites.lake()
        lake.start()
        for one in every[:4]:
            send(agents(lake), one)
            send(agents(file), one)
        ballast = fill(disk)
        for one in every[4:7]:
            with pytest.raises(RetryableWireError, match="cannot be written"):
                send(agents(lake), one)
        here, there = told(lake), told(file)
        for name, answer in there.items():
            assert here[name] == answer, name
        ballast.unlink()
        for one in every[4:]:
            ship(agents(lake), one)
            ship(agents(file), one)
        assert (lake.words("rows-not-stored: cannot store hours"), lake.words("Traceback")) == (1, 0)
        assert lake.words("hours stored again after 3 refused batches") == 1
        assert_same(sites, lake, file)


def test_a_full_disk_under_the_state_folder_of_a_hub_on_a_lake(sites: Sites) -> None:
    """Rows are not there: the hub takes them, reports them, and starts again, as long as the disk is full."""
    every = list(batches())
    sites.make_lake()
    file, lake = sites.file(), sites.lake()
    with disk_of(lake.directory / "state", "8m") as disk:
        lake.start()
        fill(disk)
        for one in every[:5]:
            ship(agents(lake), one)
            ship(agents(file), one)
        here, there = told(lake), told(file)
        for name, answer in there.items():
            assert here[name] == answer, name
        lake.stop()
        lake.start()
        for one in every[5:]:
            ship(agents(lake), one)
            ship(agents(file), one)
        assert lake.words("Traceback") == 0
        assert_same(sites, lake, file)
