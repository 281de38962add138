"""The hub's store in a lake: real DuckLake on a real PostgreSQL gives the same rows and answers as a file."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.integration.hub.rig import Rig
from tests.integration.store.drawn_site import BEGIN, END, DrawnSite, hub_of, tell
from tests.unit.advisor.verdicts import verdict
from tests.unit.hub.test_action_manager import INTENT
from tests.unit.store.test_notice_store import row

from gpuwaste.act.actions.action_store import ActionStore
from gpuwaste.act.keeps.keep_store import KeepPick, KeepStore
from gpuwaste.act.keeps.keep_types import KeepRow
from gpuwaste.act.notify.notice_store import OPEN, NoticeStatus, NoticeStore
from gpuwaste.advice.rescore_store import Rescore, RescoreStore
from gpuwaste.advice.verdicts.verdict_store import VerdictStore
from gpuwaste.core.clock import SystemClock
from gpuwaste.core.errors import StoreError
from gpuwaste.core.units import DAY_S
from gpuwaste.jobs.events.envelope import StoredEvent
from gpuwaste.jobs.events.event_store import EventStore
from gpuwaste.jobs.machine import machine_reads, machine_store
from gpuwaste.jobs.machine.types import HeldAmount
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.ledger.appeals.appeal_evidence import Evidence
from gpuwaste.ledger.appeals.appeal_store import AppealPick, AppealStore
from gpuwaste.ledger.hour_store import upsert_hours
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.slurm.site.cluster_model import NEVER, Node
from gpuwaste.slurm.site.machine_events import NodeOutage, ReservedNodes
from gpuwaste.store.database import MEMORY
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.store.hub.lake_store import LakeStore
from gpuwaste.store.hub.row_deletion import delete_old, retentions
from gpuwaste.store.lake_database import LakeLocation
from gpuwaste.testing import postgres_server
from gpuwaste.testing.clocks import StandingClock
from gpuwaste.testing.hub_rows import HOUR, batch, hour, record
from gpuwaste.testing.postgres_server import PostgresServer
from gpuwaste.views.view import all_views

pytestmark = [pytest.mark.long, pytest.mark.sockets]
CAROL, OPER = 1003, 1004
OF_THE_LAKE = {"fence", "schema_version", "arrived", "folded"}
EDGES = f"start={BEGIN}&end={END}"
DOCUMENTS = (
    "/v1/report?days=21", "/v1/report?days=3", "/v1/top", "/v1/now", "/v1/history?after=0&limit=5000",
    "/v1/verdicts?days=21", "/v1/verdicts/score?days=21", "/v1/events?after=0&limit=500", "/v1/jobs/7", "/v1/jobs/30",
    "/v1/report?user=a%00b", "/v1/report?user=x%27%3B--&days=21",
)  # fmt: skip


def lake_keys(server: PostgresServer, tmp_path: Path) -> dict[str, Any]:
    data = tmp_path / "lake"
    data.mkdir(exist_ok=True)
    return {"store": "lake", "lake_catalog": server.new_database(), "lake_data": str(data)}


def answers(hub: Rig) -> dict[str, Any]:
    """Return what each reader is told, by target and user."""
    targets = [*DOCUMENTS, *(f"/v1/views/{view}?{EDGES}" for view in all_views())]
    found = {f"{uid} {target}": hub.get(uid, target) for target in targets for uid in (CAROL, OPER)}
    pages = ["/me", "/top", "/analytics", f"/analytics/waste?{EDGES}", f"/analytics/jobs?{EDGES}"]
    found |= {f"page {target}": hub.page(OPER, target) for target in pages}
    return {name: (answer.status, _told(answer.body)) for name, answer in found.items()}


def _told(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return data.decode()


def rows(hub: Rig) -> dict[str, list[Any]]:
    """Return the rows of each table that is the hub's own, without the marks of packing, which a lake does not have."""
    with hub.store.reader() as db:
        names = db.execute(
            "SELECT DISTINCT table_name FROM duckdb_tables() WHERE NOT temporary ORDER BY ALL"
        ).fetchall()
        tables = [name for (name,) in names if not name.startswith("ducklake_") and name not in OF_THE_LAKE]
        found = {}
        for name in tables:
            columns = db.execute(f"SELECT column_name FROM (DESCRIBE {name}) ORDER BY ALL").fetchall()  # noqa: S608
            listed = ", ".join(f'"{column}"' for (column,) in columns)
            kept = db.execute(f"SELECT {listed} FROM {name} ORDER BY ALL").fetchall()  # noqa: S608 a table's name
            found[name] = [columns, *(row for row in kept if not str(row[0]).endswith("packed_until"))]
    return found


def test_a_lake_gives_what_a_file_gives(postgres: PostgresServer, tmp_path: Path) -> None:
    """Two hubs get the same site, one keeps a file and one a lake: every row, document, view and page is equal."""
    site = DrawnSite(1)
    found = []
    stores: dict[str, dict[str, Any]] = {"file": {}, "lake-hub": lake_keys(postgres, tmp_path)}
    for name, keys in stores.items():
        clock = StandingClock(BEGIN)
        with hub_of(tmp_path / name, clock, **keys) as hub:
            tell(hub, site, clock)
            found.append((rows(hub), answers(hub)))
    (file_rows, file_answers), (lake_rows, lake_answers) = found
    for table in file_rows:
        assert lake_rows[table] == file_rows[table], table
    assert all(len(file_rows[table]) > 30 for table in ("judged", "days", "hours", "events")), "a hub's usual data"
    for name, answer in file_answers.items():
        assert lake_answers[name] == answer, name


def _small_stores(store: HubStore, clock: StandingClock) -> Iterator[Any]:
    """Yield what the stores of notices, actions, events, predictions appeals and keeps answer, step by step."""
    notices, actions, events = NoticeStore(store, clock), ActionStore(store, clock), EventStore(store, clock)
    said, verdicts, runs = (
        RescoreStore(store, clock),
        VerdictStore(store, clock),
        [record(7, "alice"), record(8, "bob")],
    )
    yield upsert_jobs(store, runs)
    yield notices.add_period("digest", 100, [row("alice"), row("bob")], dry=False)
    first = notices.due()[0]
    yield [notices.move(first, NoticeStatus.SENDING, was=OPEN) for _ in range(2)]
    yield notices.close_interrupted(), notices.close_before("digest", 200), notices.listed(0, 300)
    for mail in (False, False, True):
        notices.want("alice", mail=mail)
        yield notices.opted_out()
    made = [StoredEvent(f"e{number}", "job.verdict", "x", clock.now_s, "{}") for number in range(3)]
    yield events.tell(made), events.tell(made), events.last(0)
    yield actions.add([INTENT, INTENT], {INTENT.id: replace(made[0], id="e9", kind="action.intended")})
    moved = [actions.move(INTENT.id, {"intended"}, "sent", reason="why", plan={"job": "8"}) for _ in range(2)]
    yield *moved, actions.found("a")
    yield actions.lease("one", 60), actions.lease("two", 60), actions.lease("one", 60, anew=True)
    for reason in ("down", "gone"):
        events.handed("hook", 2, [(1, "e1", "job.verdict", reason), (2, "e2", "job.verdict", reason)])
        yield events.place("hook"), events.dead(9), events.dead_counts()
    scored = [Rescore(run.run_key, "start", clock.now_s, {"failure": 0.5}) for run in runs]
    yield said.add(scored, []), said.add(scored, []), said.of([run.run_key for run in runs])
    appeals = AppealStore(store, clock)
    for words in ("wrong\0", "right"):
        about = Evidence("judgement", runs=runs)
        yield appeals.add(words[:1], "alice", words, about, most_open=1), appeals.listed(AppealPick(9))
    yield appeals.close(appeals.listed(AppealPick(1))[0], "oper", "no", "dismissed"), appeals.of([runs[0].run_key])
    keeps = KeepStore(store, clock)
    keeps.add([KeepRow(**KEPT, at=clock.now_s, since=clock.now_s, until=clock.now_s + 60)])
    yield keeps.since(0), keeps.spent("alice", clock.now_s + 1), keeps.listed(KeepPick(9))
    yield keeps.of_run(RunKey("gw", 7, 5), clock.now_s)
    yield verdicts.add([verdict(1, at_utc_us=clock.now_s * 10**6)] * 2, "ctl"), verdicts.counts()
    yield from _machine(store, clock.now_s)
    clock.now_s += 1000 * DAY_S
    yield delete_old(store, clock, {kept.days: 1 for _, kept in retentions()}), events.page(0, 99).events
    yield events.tell([replace(made[0], id="e10")]), events.last(0)


KEPT: dict[str, Any] = {
    "id": "k", "cluster": "gw", "job_id": 7, "start": 5, "printed_id": "7", "user": "alice", "account": "p",
    "asked_by": "alice", "reason": "x",
}  # fmt: skip


def _machine(store: HubStore, now: int) -> Iterator[Any]:
    """Yield what is known of the machine after each change."""
    nodes, outage = [Node("a", gpus={"": 2}), Node("b")], NodeOutage("a", now, None, "DOWN")
    held = [HeldAmount("a", 1, 2, 3), HeldAmount("b", 1, 1, 1)]
    for at, shown, end in ((now, nodes, None), (now + 9, nodes[:1], now + 8)):
        with store.writing() as db:
            yield machine_store.write_nodes(db, "gw", shown, at)
            yield machine_store.replace_outages(db, "gw", [replace(outage, end=end)], now - 9)
            yield machine_store.replace_reservations(db, "gw", [ReservedNodes("r", now, at + 9, "a")], now - 9)
            machine_store.set_complete(db, "machine_events", "gw", now - 9, at)
            rows = [{"job_id": 7, "run_start": now} | amount._asdict() for amount in held]
            machine_store.add_held(db, "gw", rows)
        with store.reader() as db:
            yield machine_reads.machine_nodes(db, "gw", 0, NEVER), machine_reads.outages(db, "gw", 0, NEVER)
            yield machine_reads.reservations(db, "gw", 0, NEVER), machine_reads.machine_known(db, "gw")
            yield list(machine_reads.held_runs(db, "gw", 0, NEVER)), db.execute("FROM held_on_node").fetchall()


def test_small_tables_of_a_lake_are_those_of_a_file(postgres: PostgresServer, tmp_path: Path) -> None:
    """Notices, actions, outlets, appeals, keeps, the machine, pruning: each step gives the same in both."""
    found = []
    location = LakeLocation(postgres.new_database(), tmp_path / "lake")
    for kind in ("file", "lake"):
        clock = StandingClock(HOUR + 4000)
        store: HubStore = HubStore.open(MEMORY, clock)
        if kind == "lake":
            store = LakeStore.open_lake(location, clock, tmp_path)
        found.append(list(_small_stores(store, clock)))
        store.close()
    assert found[1] == found[0]


def test_a_second_hub_takes_the_lake_over(postgres: PostgresServer, tmp_path: Path) -> None:
    """Two stores on one lake: the older one can write nothing more, and reads what the newer one writes."""
    location = LakeLocation(postgres.new_database(), tmp_path / "lake")
    first = LakeStore.open_lake(location, SystemClock(), tmp_path)
    first.set_mark("first", 1)
    second = LakeStore.open_lake(location, SystemClock(), tmp_path)
    with pytest.raises(StoreError, match="another hub has taken over this lake"):
        first.set_mark("first", 2)
    with pytest.raises(StoreError, match="another hub has taken over"):
        upsert_jobs(first, [record(7, "alice")])
    second.set_mark("second", 3)
    assert (first.mark("first"), first.mark("second"), first.counts()["jobs"]) == (1, 3, 0)
    first.close()
    second.close()


def test_a_commit_that_overlaps_a_takeover_is_refused(postgres: PostgresServer, tmp_path: Path) -> None:
    """A hub that was stopped in its transaction while another took over: nothing of it is stored."""
    location = LakeLocation(postgres.new_database(), tmp_path / "lake")
    first = LakeStore.open_lake(location, SystemClock(), tmp_path)
    with pytest.raises(StoreError), first.writing() as db:
        db.run("mark_set", {"key": "late", "value": 1})
        second = LakeStore.open_lake(location, SystemClock(), tmp_path)
    assert second.mark("late") is None
    first.close()
    second.close()


def test_a_hub_goes_on_when_postgresql_is_back(tmp_path: Path) -> None:
    """While PostgreSQL is down a batch is refused so that the agent keeps it; afterwards it is stored, once."""
    if reason := postgres_server.missing():
        pytest.skip(reason)
    with (
        postgres_server.postgres_server() as server,
        hub_of(tmp_path / "hub", StandingClock(HOUR + 4000), **lake_keys(server, tmp_path)) as hub,
    ):
        assert hub.post(batch(hour(7))).status == 200
        server.kill()
        refused = hub.post(batch(hour(8)))
        assert refused.status == 503, refused.body
        server.start()
        assert [hub.post(batch(hour(8))).status for _ in range(2)] == [200, 200]
        assert [found["job_id"] for found in hub.hours()] == [7, 8]


def test_files_are_merged(postgres: PostgresServer, tmp_path: Path) -> None:
    """Twenty batches leave as many files; after the merge a table has one, with the same rows."""
    store = LakeStore.open_lake(LakeLocation(postgres.new_database(), tmp_path / "lake"), SystemClock(), tmp_path)
    for job in range(20):
        upsert_hours(store, [hour(job)])
    before, files = store.counts(), _files(store)
    store.checkpoint()
    assert (files, _files(store), store.counts()) == (20, 1, before)
    assert store.size_b() > 0
    store.close()


def _files(store: LakeStore) -> int:
    with store.reader() as db:
        found = db.execute("SELECT file_count FROM ducklake_table_info('lake') WHERE table_name = 'hours'").fetchall()
    return int(found[0][0])


def test_what_cannot_be_opened_is_one_line(postgres: PostgresServer, tmp_path: Path) -> None:
    """No server, no database, another directory than the lake's: each is a StoreError of one line."""
    database = postgres.new_database()
    LakeStore.open_lake(LakeLocation(database, tmp_path / "lake"), SystemClock(), tmp_path).close()
    for catalog, data in (
        (f"host={tmp_path} dbname=none", tmp_path / "lake"),
        (f"{database}none", tmp_path / "lake"),
        (database, tmp_path / "other"),
    ):
        with pytest.raises(StoreError) as caught:
            LakeStore.open_lake(LakeLocation(catalog, data), SystemClock(), tmp_path)
        assert str(caught.value).startswith(f"lake {data}: ")
        assert "\n" not in str(caught.value)


def test_a_lake_is_not_copied_as_a_file(postgres: PostgresServer, tmp_path: Path) -> None:
    """A backup of a file is refused with what to do instead."""
    store = LakeStore.open_lake(LakeLocation(postgres.new_database(), tmp_path / "lake"), SystemClock(), tmp_path)
    with pytest.raises(StoreError, match="pg_dump"):
        store.copy_to(tmp_path / "hub.duckdb")
    store.close()


def test_a_lake_is_backed_up_and_restored_as_documented(postgres: PostgresServer, tmp_path: Path) -> None:
    """pg_dump, then rsync, while the hub writes; the database and the files put back: each row as it was."""
    data = tmp_path / "lake"
    location = LakeLocation(postgres.new_database(), data)
    store = LakeStore.open_lake(location, SystemClock(), tmp_path)
    upsert_jobs(store, [record(7, "alice"), record(8, "bob")])
    upsert_hours(store, [hour(7), hour(8)])
    saved, dump, files = store.counts(), tmp_path / "gpuwaste.dump", tmp_path / "files"
    postgres.save(location.catalog, dump)
    upsert_hours(store, [hour(9)])
    store.checkpoint()  # the files that the dump names are merged; they are kept for an hour
    subprocess.run(["rsync", "-a", f"{data}/", f"{files}/"], check=True)
    upsert_jobs(store, [record(9, "carol")])
    store.close()
    shutil.rmtree(data)
    subprocess.run(["rsync", "-a", "--delete", f"{files}/", f"{data}/"], check=True)
    postgres.restore(location.catalog, dump)
    back = LakeStore.open_lake(location, SystemClock(), tmp_path)
    assert back.counts() == saved
    with back.reader() as db:
        read = db.execute("SELECT job_id, sum(len(util_ms)) FROM hours GROUP BY ALL ORDER BY ALL").fetchall()
    assert [job for job, _ in read] == [7, 8]
    upsert_hours(back, [hour(9)])
    assert back.counts()["hours"] == saved["hours"] + 1
    back.close()


def test_a_lake_has_no_backup_by_the_hub(postgres: PostgresServer, tmp_path: Path) -> None:
    """The hub answers a request for a backup with one line that names the tools for it, and logs no failure."""
    with hub_of(tmp_path / "hub", StandingClock(HOUR + 4000), **lake_keys(postgres, tmp_path)) as hub:
        answer = hub.post(b"{}", OPER, target="/v1/backup")
    assert answer.status == 409
    assert "pg_dump (lake_catalog), then rsync (lake_data)" in answer.json["error"]
