"""The inbox of a real lake: what hubs that stand by take is merged as if the hub that serves had taken it."""

import random
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.integration.hub.rig import Answer, Rig, running_hub
from tests.integration.hub.test_standby import location_of, passed_on, standing_by
from tests.integration.hub.test_verdicts import body as verdicts_of
from tests.integration.store.test_lake import lake_keys
from tests.unit.advisor.verdicts import NOON_US, verdict

from gpuwaste.core.errors import StoreError
from gpuwaste.core.units import DAY_S, HOUR_S
from gpuwaste.hub.batch_folder import BatchFolder
from gpuwaste.hub.inbox_parts import InboxParts
from gpuwaste.hub.inbox_room import MOST_AGE_S
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.ledger.hour import AllocationHour
from gpuwaste.store.database import Database
from gpuwaste.store.hub.inbox import (
    MOST_APPENDED,
    PAGE,
    PAGE_B,
    Arrival,
    HubLake,
    InboxWriter,
    page,
    turn,
    waiting,
)
from gpuwaste.store.hub.lake_store import LakeStore
from gpuwaste.store.lake_database import LakeDatabase
from gpuwaste.testing.clocks import StandingClock
from gpuwaste.testing.hub_rows import HOUR, batch, hour, record
from gpuwaste.testing.postgres_server import PostgresServer

pytestmark = pytest.mark.sockets
NOW = HOUR + 2 * DAY_S
BATCHES = "hours", "events", "verdicts", "told_events", "marks"
VERDICTS = "/v1/verdicts"


@pytest.fixture
def clock() -> StandingClock:
    """Stand still."""
    return StandingClock(NOW)


@pytest.fixture
def hub(postgres: PostgresServer, tmp_path: Path, clock: StandingClock) -> Iterator[Rig]:
    """Serve from a lake, with one run in accounting."""
    with running_hub(tmp_path / "lake-hub", clock=clock, hub_keys=lake_keys(postgres, tmp_path)) as made:
        upsert_jobs(made.store, [record(7, "alice"), record(8, "bob", gpus=2)])
        yield made


@pytest.fixture
def beside(hub: Rig) -> Iterator[Rig]:
    """Stand by on its lake."""
    with standing_by(hub) as (made, _):
        yield made


def folder(hub: Rig) -> BatchFolder:
    found = hub.hub.get(InboxParts).folder
    assert found is not None
    return found


def merge(hub: Rig) -> int:
    """Merge what waits."""
    return folder(hub).step()


def quarantined(hub: Rig) -> list[tuple[Any, ...]]:
    with hub.store.reader() as db:
        return db.execute("SELECT source, line, reason, raw FROM quarantine ORDER BY ALL").fetchall()


def tables(hub: Rig) -> dict[str, list[Any]]:
    """Return all rows that come from batches, with their columns; quarantine has what a sender was not told."""
    found = {}
    with hub.store.reader() as db:
        for name in BATCHES:
            columns = sorted(column for column, *_ in db.execute(f"DESCRIBE {name}").fetchall())
            listed = ", ".join(f'"{column}"' for column in columns)
            found[name] = [columns, *db.execute(f"SELECT {listed} FROM {name} ORDER BY ALL").fetchall()]  # noqa: S608
    return found


def drawn(seed: int, count: int) -> Iterator[tuple[bytes, str]]:
    """Yield bodies of batches and where they go, with rows that only the hub that serves refuses."""
    rng = random.Random(seed)
    for number in range(count):
        if number % 5 == 4:
            said = [verdict(rng.randrange(12), at_utc_us=NOON_US + n, name="a\0b") for n in range(2)]
            yield verdicts_of(*said), VERDICTS
            continue
        node = rng.choice(["gpu1", "gpu2"])
        yield batch(*(_hour(rng, node) for _ in range(rng.randint(1, 6))), node=node), "/v1/hours"


def _hour(rng: random.Random, node: str) -> AllocationHour:
    start, job = HOUR + rng.randrange(3) * HOUR_S, rng.choice([7, 8, 9])
    return of_hour(
        start, job, seq=rng.randint(1, 5), final=rng.random() < 0.2, node=node,
        gpu_uuid=rng.choice(["GPU-a", "GPU-b", "GPU-c"]),
        util_ms={rng.randrange(100): rng.randrange(1_800_000)},
    )  # fmt: skip


def of_hour(start: int, job: int, **more: Any) -> AllocationHour:
    """Return a row of the first half of an hour."""
    return hour(job, hour_utc=start, t0_ms=start * 1000, t1_ms=start * 1000 + 1_800_000, **more)


def post(to: Rig, one: tuple[bytes, str], origin: str = "") -> Answer:
    """Send a batch from the address of its node."""
    node = 2 if b'"node":"gpu2"' in one[0].partition(b"\n")[0] else 1
    return to.post(one[0], target=one[1], origin=origin or f"10.0.0.{node}")


@pytest.mark.long
def test_three_hubs_keep_what_one_hub_with_a_file_keeps(
    hub: Rig, beside: Rig, clock: StandingClock, tmp_path: Path
) -> None:
    """Batches to three hubs in turn, some twice to different ones: each row of each table is equal to the file's."""
    with (
        standing_by(hub) as (last, _),
        running_hub(tmp_path / "file", clock=clock) as file,
    ):
        upsert_jobs(file.store, [record(7, "alice"), record(8, "bob", gpus=2)])
        hubs = [beside, hub, replace(last, _nonce=10**7)]
        for number, one in enumerate(drawn(1, 15)):
            known = post(file, one)
            for to in hubs[number % 3 :][: 1 + (number % 7 == 3)]:
                found = post(to, one)
                assert (found.status, known.status) == (200, 200)
                refused = len(known.json["rejected"])
                assert found.json["accepted"] == known.json["accepted"] + (0 if to is hub else refused)
            merge(hub)  # in the order in which the file's hub has them: the GPUs that come first count
        assert tables(hub) == tables(file)
        assert sum(number % 3 != 1 for number in range(15)) <= folder(hub).merged
        assert quarantined(hub), "rows that the hub that serves has refused"
        with hub.store.reader() as db:
            assert waiting(db).batches == 0


def test_a_row_that_only_the_hub_that_serves_refuses_is_quarantined(hub: Rig, beside: Rig) -> None:
    """Accounting gave the run one GPU: the sender is told that both rows are stored, the second one is set aside.

    What each hub can tell is refused at once, and no other row of the batch suffers.
    """
    wrong = hour(7, gpu_uuid="GPU-b"), of_hour(NOW + 2 * DAY_S, 7)
    answer = beside.post(batch(hour(7), *wrong))
    assert (answer.status, answer.json["accepted"], [one["line"] for one in answer.json["rejected"]]) == (200, 2, [4])
    assert "gpuwaste-role" not in answer.headers
    assert answer.headers["gpuwaste-ack"].startswith("ack:900:")
    assert merge(hub) == 1
    assert [row["gpu_uuid"] for row in hub.hours()] == ["GPU-a"]
    ((source, line, reason, raw),) = quarantined(hub)
    assert (source, line, "GPU-b" in raw) == ("hours", 3, True)
    assert reason == "accounting gave job 7 1 GPUs, and GPU-b on gpu1 is beyond them"
    metrics = hub.get(900, "/metrics").body.decode()
    assert 'gpuwaste_hub_quarantined_rows_total{source="hours"} 1.0' in metrics
    assert 'gpuwaste_hub_rows_total{result="accepted"} 1.0' in metrics


def test_it_refuses_whom_the_hub_that_serves_refuses(hub: Rig, beside: Rig) -> None:
    """Another user, another host, another cluster, no batch, a credential used twice: the same status and words."""
    for body, uid, origin in (
        (batch(hour(7)), 1001, "10.0.0.1"),
        (batch(hour(7)), 900, "10.0.0.2"),
        (batch(hour(7), cluster="other"), 900, "10.0.0.1"),
        (batch(hour(7), protocol=9), 900, "10.0.0.1"),
        (b"no batch\n", 900, "10.0.0.1"),
    ):
        found, known = (to.post(body, uid, origin) for to in (beside, hub))
        assert (found.status, found.body) == (known.status, known.body)
        assert found.status in {400, 403, 426}
    body = batch(hour(7))
    again = {"Authorization": beside.credential(900, "POST", "/v1/hours", body)}
    assert [beside.send("POST", "/v1/hours", body, again).status for _ in range(2)] == [200, 401]
    assert merge(hub) == 1


def test_a_batch_is_late_or_early_by_the_clock_of_its_arrival(hub: Rig, beside: Rig, clock: StandingClock) -> None:
    """A row a day ahead is refused when it arrives; one that was good then is good when it is merged days later."""
    ahead = of_hour(NOW + DAY_S + HOUR_S, 9)
    assert beside.post(batch(ahead)).json["accepted"] == 0
    assert beside.post(batch(of_hour(NOW, 9))).json["accepted"] == 1
    assert post(beside, (verdicts_of(verdict(1, at_utc_us=NOW * 10**6)), VERDICTS)).json["accepted"] == 1
    clock.now_s = NOW - 3 * DAY_S  # as a holder whose clock is wrong would have it
    assert merge(hub) == 2
    assert [row["hour_utc"] for row in hub.hours()] == [NOW]
    with hub.store.reader() as db:
        assert db.execute("SELECT taken_utc FROM verdicts").fetchall() == [(NOW,)]


def test_a_merge_that_was_broken_off_is_done_again_exactly(hub: Rig, beside: Rig) -> None:
    """Another hub takes the lake between the reading of a page and its commit: nothing of it is there.

    The next one merges the same batches: each row, event and verdict is there once, also after the first one goes on.
    """
    for job in (7, 8, 9):
        assert beside.post(batch(hour(job, final=True))).status == 200
    assert post(beside, (verdicts_of(verdict(1)), VERDICTS)).status == 200
    before = tables(hub)
    with running_hub(hub.directory.parent / "next", clock=hub.clock, hub_keys=_keys(hub)) as following:
        with pytest.raises(StoreError, match="has taken over"):
            merge(hub)
        assert tables(following) == before
        assert merge(following) == 4
        kept = tables(following)
        with pytest.raises(StoreError, match="has taken over"):
            hub.store.set_mark("x", 1)
        assert merge(hub) == merge(following) == 0
        assert tables(following) == kept
        assert [row["job_id"] for row in following.hours()] == [7, 8, 9]
        assert len([row for row in kept["events"][1:] if "ledger" in row]) == 3
        assert len(kept["verdicts"]) == len(kept["told_events"]) == 2  # with the line of columns


def _keys(hub: Rig) -> dict[str, Any]:
    config = hub.hub.config.hub
    return {"store": "lake", "lake_catalog": config.lake_catalog, "lake_data": config.lake_data}


def test_a_batch_that_cannot_be_stored_keeps_none_of_the_others_waiting(hub: Rig, beside: Rig) -> None:
    """What another version left, and nobody here can read, is quarantined line by line; the rest is merged."""
    assert beside.post(batch(hour(7))).status == 200
    with closing(InboxWriter(location_of(hub))) as writer:
        writer.append([_arrival(b"no envelope\nno row\n"), _arrival(b"x\0y", "/v9/unknown")])
    assert beside.post(batch(hour(8))).status == 200
    assert merge(hub) == 4
    assert [row["job_id"] for row in hub.hours()] == [7, 8]
    assert sorted((row[0], row[1], row[3]) for row in quarantined(hub)) == [
        ("/v9/unknown", 1, "x\\x00y"), ("hours", 1, "no envelope"), ("hours", 2, "no row"),
    ]  # fmt: skip
    assert merge(hub) == 0


def _arrival(body: bytes, kind: str = "/v1/hours") -> Arrival:
    return Arrival(kind, NOW * 10**6, "uid 900", body)


def _bodies(db: Database) -> list[bytes]:
    """Return all that waits, page by page, and note it as merged."""
    found: list[bytes] = []
    while (next_ := page(db)) is not None:
        found += [one.body for one in next_.arrivals]
        db.execute("UPDATE folded SET snapshot = ?", [next_.until])
    return found


def test_a_page_has_whole_commits_in_their_order(hub: Rig) -> None:
    """Commits of many batches, more than a page has: each comes once, whatever its bytes, and in order."""
    bodies = [bytes([number % 256, 0, 255]) * (number + 1) for number in range(3 * MOST_APPENDED + 5)]
    with closing(InboxWriter(location_of(hub))) as writer:
        for first in range(0, len(bodies), MOST_APPENDED):
            writer.append([_arrival(body) for body in bodies[first : first + MOST_APPENDED]])
    with hub.store.reader() as db:
        first_page = page(db)
        assert first_page is not None
        assert len(first_page.arrivals) == PAGE - MOST_APPENDED or len(first_page.arrivals) == PAGE
        assert _bodies(db) == bodies
        large = [random.Random(number).randbytes(PAGE_B // 2 + 1) for number in range(4)]
        with closing(InboxWriter(location_of(hub))) as writer:
            for some in (large[:1], large[1:3], large[3:]):
                writer.append([_arrival(body) for body in some])
        next_page = page(db)
        assert next_page is not None
        assert [one.body for one in next_page.arrivals] == large[:1]
        assert _bodies(db) == large


@pytest.mark.long
def test_the_table_is_dropped_when_all_of_it_is_merged(hub: Rig, beside: Rig) -> None:
    """Put aside, sealed, dropped: an append that began before is refused, and kept by the writer's second try.

    Files are merged between the steps, and what was not merged yet stays until it is.
    """
    with closing(LakeDatabase.open_appender(location_of(hub), "hub")) as late:
        for job in (7, 8):
            assert beside.post(batch(hour(job))).status == 200
        turn(hub.store, NOW * 10**6, 2)
        assert names(hub) == ["arrived"], "nothing is merged yet"
        assert merge(hub) == 2
        assert beside.post(batch(hour(9))).status == 200
        with pytest.raises(StoreError), late.transaction():
            late.execute("INSERT INTO arrived VALUES ('/v1/hours', 1, 'late', 1, '')")
            turn(hub.store, NOW * 10**6, 2)
            turn(hub.store, NOW * 10**6, 2)
        assert names(hub) == ["arrived", "arrived_closed"]
        merge_files(hub)
        assert beside.post(batch(hour(10))).status == 200
        turn(hub.store, NOW * 10**6, 2)
        assert names(hub) == ["arrived", "arrived_closed"], "a batch of it is not merged"
        assert merge(hub) == 2
        turn(hub.store, NOW * 10**6, 2)
        assert names(hub) == ["arrived"]
        merge_files(hub)
        assert beside.post(batch(hour(11))).status == 200
        assert merge(hub) == 1
        turn(hub.store, (NOW + DAY_S) * 10**6, 9)
        assert names(hub) == ["arrived"], "few batches, none older than a day"
        turn(hub.store, (NOW + DAY_S + 1) * 10**6, 9)
        assert names(hub) == ["arrived", "arrived_closed"]
        assert [row["job_id"] for row in hub.hours()] == [7, 8, 9, 10, 11]


def merge_files(hub: Rig) -> None:
    """Do what the upkeep does, and let errors through."""
    with hub.store.locked(), hub.store.reader() as db:
        db.execute("CHECKPOINT lake")


def test_files_can_be_merged_after_each_takeover(hub: Rig) -> None:
    """Rows and tables of the inbox made by one hub, more rows by the next: DuckLake finds the table of each file."""
    for number in range(3):
        with (
            closing(InboxWriter(location_of(hub))) as writer,
            closing(LakeStore.open_lake(location_of(hub), hub.clock, hub.directory / f"scratch{number}")) as store,
        ):
            writer.append([_arrival(b"x")])
            with store.locked(), store.reader() as db:
                db.execute("CHECKPOINT lake")
                assert waiting(db).batches == number + 1


def names(hub: Rig) -> list[str]:
    with hub.store.reader() as db:
        found = db.execute("SELECT table_name FROM duckdb_tables() WHERE table_name LIKE 'arrived%' ORDER BY 1")
        return [name for (name,) in found.fetchall()]


def test_too_much_that_waits_is_refused(hub: Rig, clock: StandingClock) -> None:
    """Batches older than ten minutes, or a hub that serves and does not merge: senders are sent on to the next one."""
    with standing_by(hub) as (beside, standby):
        assert beside.post(batch(hour(7))).status == 200
        clock.now_s += MOST_AGE_S
        standby.look()
        assert beside.post(batch(hour(8))).status == 200
        health = hub.get(900, "/v1/health").json
        assert (health["inbox"], health["status"]) == ({"batches": 2, "age_s": MOST_AGE_S}, "degraded")
        clock.now_s += 1
        standby.look()
        refused = beside.post(batch(hour(9)))
        assert (passed_on(refused), "accepts no batches now" in refused.json["error"]) == (True, True)
        assert merge(hub) == 2
        standby.look()
        assert beside.post(batch(hour(9))).status == 200
        assert b"gpuwaste_hub_inbox_taken_batches_total 3.0" in beside.get(900, "/metrics").body
        assert merge(hub) == 1
        assert b"gpuwaste_hub_inbox_merged_batches_total 3.0" in hub.get(900, "/metrics").body
        with hub.store.writing() as db:
            db.execute("UPDATE folded SET token = token - 1")  # as a version leaves it that knows no inbox
        standby.look()
        assert passed_on(beside.post(batch(hour(10))))
        assert beside.get(1001, "/v1/jobs/7").status == 200, "reads are answered all the same"


def test_a_lake_of_a_version_without_an_inbox_gets_one(hub: Rig) -> None:
    """Without its tables nothing is taken, and reads are answered; the next hub that takes over makes them."""
    with hub.store.writing() as db:
        for table in ("arrived", "folded"):
            db.execute(f"DROP TABLE {table}")
    with standing_by(hub) as (beside, standby):
        assert passed_on(beside.post(batch(hour(7))))
        assert beside.get(1001, "/v1/jobs/7").status == 200
        HubLake.open_lake(location_of(hub), "hub").close()
        standby.look()
        assert beside.post(batch(hour(7))).status == 200


@pytest.mark.long
def test_without_postgresql_nothing_is_taken(hub: Rig, beside: Rig, postgres: PostgresServer) -> None:
    """503 without the mark that sends a batch on: nobody knows whether it is stored; later the same is taken."""
    postgres.kill()
    try:
        answer = beside.post(batch(hour(7)))
        assert (answer.status, "gpuwaste-role" in answer.headers) == (503, False)
    finally:
        postgres.start()
    assert beside.post(batch(hour(7))).status == 200
    assert merge(hub) == 1
    assert [row["job_id"] for row in hub.hours()] == [7]
