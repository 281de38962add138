"""The hub's events over real HTTP: who sees which, pages and Server-Sent Events, sources, outlets."""

import json
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from http.client import HTTPConnection
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.integration.hub.rig import Rig, running_hub
from tests.integration.hub.test_now import ALICE, BOB, CAROL, NOW, OPEN, OPER, used

from gpuwaste.act.events.event_service import EventReads, EventService
from gpuwaste.act.events.event_types import CatalogueDocument, OutletsDocument
from gpuwaste.act.events.sources import SourceStores, sources
from gpuwaste.core.codec import convert
from gpuwaste.core.scope import Scope
from gpuwaste.hub.places import OF_USER
from gpuwaste.hub.routes.events import MAX_STREAMS
from gpuwaste.hub.verdict_ingest import VerdictIngest
from gpuwaste.jobs.cluster_facts import ClusterFacts
from gpuwaste.jobs.events.kind_catalogue import catalogue
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.jobs.verdict import Verdict
from gpuwaste.ledger.judging import Judging
from gpuwaste.net.batch import Envelope
from gpuwaste.slurm.site.cluster_model import Node
from gpuwaste.testing.clocks import ShiftedClock
from gpuwaste.testing.cluster_process import wait_until
from gpuwaste.testing.fake_slurm import FakeSlurm
from gpuwaste.testing.hub_rows import HOUR, batch, hour, record
from gpuwaste.testing.patience import patient
from gpuwaste.testing.webhook_receiver import webhook_receiver


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    """Run a hub: job 7 of alice holds a GPU of gpu1 that does nothing, job 8 of bob one of the silent gpu2."""
    nodes = [Node(f"gpu{n}", address=f"10.0.0.{n}") for n in (1, 2)]
    coordinators = {"proj1": frozenset({"carol"})}
    slurm = FakeSlurm(node_list=nodes, levels={"oper": "Operator"}, account_coordinators=coordinators)
    outlets = tmp_path / "outlets.d"
    with running_hub(tmp_path, slurm, clock=ShiftedClock(NOW), hub_keys={"outlets_dir": str(outlets)}) as found:
        found.hub.get(ClusterFacts).refresh()
        upsert_jobs(
            found.store,
            [record(7, "alice", **OPEN, name="train"), record(8, "bob", "proj2", **{**OPEN, "nodes": "gpu2"})],
        )
        assert found.post(batch(used(7, 0))).status == 200
        yield found


def asked(rig: Rig, uid: int, target: str = "/v1/events") -> Any:
    answer = rig.get(uid, target)
    assert answer.status == 200, answer.body
    return answer.json


def told(rig: Rig, uid: int = OPER, kinds: str = "*") -> list[tuple[str, str]]:
    """Return type and subject of the events of some kinds that a user sees."""
    events = asked(rig, uid, f"/v1/events?kinds={kinds}")["events"]
    return [(event["type"], event["subject"]) for event in events]


def later(rig: Rig, seconds: int) -> None:
    assert isinstance(rig.clock, ShiftedClock)
    rig.clock.later_s += seconds


def test_each_caller_sees_the_events_of_their_own_runs(rig: Rig) -> None:
    """Alice her job's, carol those of her account, an operator all; what a node does is for operators."""
    rig.hub.get(EventService).look()
    runs = {user: {subject for _, subject in told(rig, user)} for user in (ALICE, BOB, CAROL)}
    assert runs == {ALICE: {f"gw/7@{HOUR}"}, BOB: {f"gw/8@{HOUR}"}, CAROL: {f"gw/7@{HOUR}"}}
    assert ("gpuwaste.node.silent", "node/gpu2") in told(rig)
    assert not told(rig, ALICE, "node.*")


def test_idle_gpus_open_grow_and_close(rig: Rig) -> None:
    """An event when they are idle for long enough, one when the time has doubled, one at the end; no others."""
    waste = f"gw/7@{HOUR}"
    assert rig.hub.get(EventService).look() == 2  # it, and the silent node
    assert told(rig, kinds="waste.*") == [("gpuwaste.waste.opened", waste)]
    later(rig, 60)
    assert rig.hub.get(EventService).look() == 0
    later(rig, 2400)
    rig.hub.get(EventService).look()
    assert not told(rig, kinds="waste.*")[1:], "nothing is known of the GPU since: it is not at work again"
    more = {"hour_utc": HOUR + 3600, "t0_ms": (HOUR + 3600) * 1000, "t1_ms": (HOUR + 4800) * 1000}
    rows = used(7, 0, until=HOUR + 3600, seq=2), used(7, 0, **more, util_ms={0: 1_200_000}, idle_run_ms=1_200_000)
    assert rig.post(batch(*rows)).status == 200
    rig.hub.get(EventService).look()
    assert told(rig, kinds="waste.*")[1:] == [("gpuwaste.waste.grown", waste)]
    upsert_jobs(rig.store, [record(7, "alice", end=HOUR + 5000, elapsed_s=5000, state="CANCELLED")])
    rig.hub.get(EventService).look()
    assert told(rig, kinds="waste.*")[2:] == [("gpuwaste.waste.closed", waste)]
    data = asked(rig, ALICE, "/v1/events?kinds=waste.opened")["events"][0]["data"]
    assert (data["jobid"], data["user"], data["gpus"]) == (7, "alice", 1)
    assert data["idle_s"] >= 2000


def test_a_restart_tells_nothing_twice(rig: Rig) -> None:
    """New sources find in the stream what is open, and close it."""
    rig.hub.get(EventService).look()
    before = told(rig)
    rig.hub.get(EventService)._sources = sources(SourceStores(rig.store, rig.hub.get(EventService).store))
    later(rig, 60)
    assert rig.hub.get(EventService).look() == 0
    assert told(rig) == before
    upsert_jobs(
        rig.store,
        [
            record(7, "alice", end=NOW + 30, elapsed_s=2430, state="CANCELLED"),
            record(8, "bob", "proj2", end=NOW + 30, elapsed_s=2430, nodes="gpu2"),
        ],
    )
    rig.hub.get(EventService)._sources = sources(SourceStores(rig.store, rig.hub.get(EventService).store))
    rig.hub.get(EventService).look()
    closed = [kind for kind, _ in told(rig)[len(before) :]]
    assert sorted(closed) == ["gpuwaste.job.ended"] * 2 + ["gpuwaste.node.back", "gpuwaste.waste.closed"]


def test_causes_are_told_as_runs_are_judged(rig: Rig) -> None:
    """From the first look on; each cause of a run once, also where runs are judged again."""
    rig.hub.get(EventService).look()
    end = NOW + 600
    later(rig, 1200)
    upsert_jobs(rig.store, [record(7, "alice", end=end, elapsed_s=end - HOUR, state="COMPLETED")])
    row = used(7, 0, until=end, seq=3)
    assert rig.post(batch(row)).status == 200
    later(rig, 40_000)
    rig.hub.get(Judging).step(rig.hub.get(Judging).worker.stopping)
    rig.hub.get(EventService).look()
    found = asked(rig, ALICE, "/v1/events?kinds=waste.finding")["events"]
    assert found, "no cause was told"
    causes = [event["data"]["cause"] for event in found]
    assert "gpus_untouched" in causes
    assert len(causes) == len(set(causes))
    rig.hub.get(EventService).look()
    assert asked(rig, ALICE, "/v1/events?kinds=waste.finding")["events"] == found


def test_a_verdict_is_an_event_with_its_row(rig: Rig) -> None:
    """Told in the transaction that stores it, once."""
    verdict = Verdict("a" * 16, "gw", NOW * 1_000_000, "submit", "default", "shadow", "pass", "warn", user="alice")
    ingest = rig.hub.get(VerdictIngest)
    envelope = Envelope("gw", "ctl", "boot", "0.1.0", 1)
    ingest._store_rows([verdict], envelope, 0)
    ingest._store_rows([verdict], envelope, 0)
    (event,) = asked(rig, OPER, "/v1/events?kinds=job.verdict")["events"]
    assert (event["subject"], event["data"]["would_be"]) == ("verdict/" + "a" * 16, "warn")
    assert catalogue()["job.verdict"].problem(event["data"]) == ""


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("kinds=job.begun", "no kind of event is called"),
        ("kinds=" + ",".join(["job.*"] * 21), "20 patterns at most"),
        ("after=x", "after"),
        ("limit=0", "limit"),
        ("kinds=" + "x" * 2000, "kinds"),
    ],
)
def test_a_question_that_is_none_is_refused(rig: Rig, question: str, words: str) -> None:
    """With a line that says what."""
    answer = rig.get(OPER, f"/v1/events?{question}")
    assert answer.status in {400, 422}
    assert words in answer.body.decode()


def test_pages_go_on_where_the_last_ended(rig: Rig) -> None:
    """Asked by ones, the same events come in the same order; at the end `next` stays."""
    rig.hub.get(EventService).look()
    whole = asked(rig, OPER)
    after, found = 0, []
    while (page := asked(rig, OPER, f"/v1/events?after={after}&limit=1"))["next"] != after:
        found += page["events"]
        after = page["next"]
    assert found == whole["events"]
    assert after == whole["next"]


def test_the_catalogue_and_the_outlets_are_documents(rig: Rig) -> None:
    """Of declared types; outlets are for operators."""
    kinds = convert(asked(rig, ALICE, "/v1/events/kinds"), CatalogueDocument, "x")
    assert [row.kind for row in kinds.kinds] == list(catalogue())
    assert convert(asked(rig, OPER, "/v1/outlets"), OutletsDocument, "x").outlets == []
    assert rig.get(ALICE, "/v1/outlets").status == 403


def followed(rig: Rig, uid: int, target: str, headers: dict[str, str], count: int) -> list[dict[str, Any]]:
    """Read Server-Sent Events until there are `count`."""
    connection = HTTPConnection("127.0.0.1", rig.port, timeout=patient(30))
    try:
        authorization = {"Authorization": rig.credential(uid, "GET", target)}
        connection.request("GET", target, headers={**authorization, **headers})
        response = connection.getresponse()
        assert (response.status, response.getheader("content-type")) == (200, "text/event-stream; charset=utf-8")
        found: list[dict[str, Any]] = []
        event: dict[str, Any] = {}
        while len(found) < count:
            name, _, value = response.readline().decode().rstrip("\n").partition(": ")
            if name == "data":
                event["data"] = json.loads(value)
            elif name in {"id", "event"}:
                event[name] = value
            elif not name and "data" in event:
                found.append(event)
                event = {}
        return found
    finally:
        connection.close()


def test_events_can_be_followed_and_taken_up_again(rig: Rig) -> None:
    """From a place on, with id and type of each; Last-Event-ID goes on behind what was seen."""
    first = followed(rig, OPER, "/v1/events/stream?after=0", {}, 2)
    assert [event["event"] for event in first] == ["gpuwaste.job.started"] * 2
    upsert_jobs(rig.store, [record(9, "alice")])
    more = followed(rig, ALICE, "/v1/events/stream?after=0&kinds=job.ended", {"Last-Event-ID": first[-1]["id"]}, 1)
    assert more[0]["data"]["subject"] == f"gw/9@{HOUR}"


def statuses(rig: Rig, uid: int, streams: int, held: list[socket.socket]) -> Counter[int]:
    """Open streams of a user at once, which stay open; return how many have which status."""
    target, opened = "/v1/events/stream", []
    for _ in range(streams):
        opened.append(socket.create_connection(("127.0.0.1", rig.port), patient(30)))
        head = f"GET {target} HTTP/1.1\r\nHost: x\r\nAuthorization: {rig.credential(uid, 'GET', target)}\r\n\r\n"
        opened[-1].sendall(head.encode())
    held += opened
    return Counter(int(one.recv(12).split()[1]) for one in opened)


def test_a_user_has_four_streams_however_many_they_ask_for_at_once(rig: Rig) -> None:
    """Of a hundred at once four are open; others get theirs, and operators the last places; free when they leave."""
    held: list[socket.socket] = []
    try:
        assert statuses(rig, ALICE, 100, held) == {200: OF_USER, 429: 100 - OF_USER}
        assert statuses(rig, BOB, 1, held) == {200: 1}
        assert statuses(rig, OPER, MAX_STREAMS, held) == {200: MAX_STREAMS - OF_USER - 1, 503: OF_USER + 1}
        assert rig.get(BOB, "/v1/events/stream").status == 503
    finally:
        for one in held:
            one.close()
    wait_until(lambda: followed(rig, ALICE, "/v1/events/stream?after=0", {}, 1) != [], 30, "a place to be free")


def test_a_reader_who_is_behind_pauses_between_pages(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bob, who may see none of 3,000 events, makes the hub read half of the time at most, until he has read them."""
    upsert_jobs(rig.store, [record(n, "alice") for n in range(100, 1600)])
    last, reads = rig.hub.get(EventReads).last(), []
    read, done = rig.hub.get(EventReads).texts, threading.Event()

    def noted(scope: Scope, after: int, *rest: Any) -> Any:
        began = time.monotonic()
        found = read(scope, after, *rest)
        reads.append((began, time.monotonic()))
        if found[1] == after:
            done.set()
        return found

    monkeypatch.setattr(rig.hub.get(EventReads), "texts", noted)
    target = "/v1/events/stream?after=0"
    with socket.create_connection(("127.0.0.1", rig.port), 30) as one:
        head = f"GET {target} HTTP/1.1\r\nHost: x\r\nAuthorization: {rig.credential(BOB, 'GET', target)}\r\n\r\n"
        one.sendall(head.encode())
        assert done.wait(patient(60))
    assert len(reads) > last // 500
    for (began, ended), (following, _) in pairwise(reads):
        assert following - ended >= ended - began


def test_an_outlet_of_the_configuration_gets_the_stream(tmp_path: Path) -> None:
    """A webhook's receiver has what the hub told, the outlet stands in its document and in /metrics."""
    with webhook_receiver() as receiver:
        outlets = tmp_path / "outlets.d"
        outlets.mkdir()
        (outlets / "hook.toml").write_text(
            '[outlet]\nbegin = "oldest"\nevents = ["job.*"]\n[webhook]\n'
            f'url = "{receiver.url}"\nnetworks = ["127.0.0.0/8"]\n'
        )
        with running_hub(tmp_path, hub_keys={"outlets_dir": str(outlets)}) as rig:
            upsert_jobs(rig.store, [record(7, "alice")])
            for worker in rig.hub.get(EventService).workers:
                worker.start()
            try:
                wait_until(lambda: len(receiver.events) == 2, 30, "two events")
                wait_until(lambda: asked(rig, OPER, "/v1/outlets")["outlets"][0]["behind"] == 0, 30, "the mark")
                (row,) = asked(rig, OPER, "/v1/outlets")["outlets"]
                assert (row["name"], row["way"], row["failures"], row["refused"]) == ("hook", "webhook", 0, 0)
                metrics = rig.send("GET", "/metrics").body.decode()
                assert 'gpuwaste_hub_outlet_events_total{outlet="hook"} 2.0' in metrics
                assert 'gpuwaste_hub_outlet_up{outlet="hook"} 1.0' in metrics
            finally:
                for worker in rig.hub.get(EventService).workers:
                    worker.stop()


def test_a_gpu_that_the_driver_lost_is_told_once(rig: Rig) -> None:
    """To the run's owner and to operators, whatever is reported of it later; other unknown time is no loss."""
    span: dict[str, Any] = {"hour_utc": HOUR, "t0_ms": HOUR * 1000, "t1_ms": (HOUR + 1800) * 1000, "idle_run_ms": 0}
    lost = hour(
        7, seq=2, gpu_uuid="GPU-7", util_ms={90: 1_200_000}, unknown_ms={"gpu_lost": 400_000, "gap": 200_000}, **span
    )
    gap = hour(8, gpu_uuid="GPU-8", node="gpu2", util_ms={90: 1_200_000}, unknown_ms={"gap": 600_000}, **span)
    assert rig.post(batch(lost)).status == 200
    assert rig.post(batch(gap, node="gpu2"), origin="10.0.0.2").status == 200
    for _ in range(2):
        rig.hub.get(EventService).look()
        later(rig, 60)
    assert told(rig, ALICE, "gpu.*") == [("gpuwaste.gpu.lost", f"gw/7@{HOUR}")]
    assert told(rig, BOB, "gpu.*") == []
    (event,) = asked(rig, OPER, "/v1/events?kinds=gpu.lost")["events"]
    assert (event["data"]["gpu_uuid"], event["data"]["lost_s"], event["data"]["user"]) == ("GPU-7", 400.0, "alice")


def test_xid_errors_are_told_once_for_each_number_and_hour(rig: Rig) -> None:
    """To the run's owner and to operators; a later row of the same hour tells nothing new."""
    for seq, count in ((2, 1), (3, 4)):
        row = hour(7, seq=seq, gpu_uuid="GPU-7", xids={79: count, 13: 2})
        assert rig.post(batch(row)).status == 200
        rig.hub.get(EventService).look()
        later(rig, 60)
    found = asked(rig, OPER, "/v1/events?kinds=gpu.xid")["events"]
    assert [(one["data"]["xid"], one["data"]["count"], one["data"]["user"]) for one in found] == [
        (13, 2, "alice"), (79, 1, "alice"),
    ]  # fmt: skip
    assert told(rig, BOB, "gpu.*") == []


def test_simulations_saved_between_two_looks_are_each_told_once(rig: Rig) -> None:
    """Three at once, also after a restart of the source four days later; one that is saved again is the same event."""
    folder = Path(rig.hub.config.hub.state_dir) / "simulations"
    folder.mkdir(parents=True)
    words = {
        "change": "limits=0.9", "scheduler": "easy", "jobs": 100, "mean_wait_s": -60.0, "low_s": -90.0, "high_s": -10.0,
        "later": 0.2, "among": 3,
    }  # fmt: skip
    names = [digit * 12 for digit in "abc"]

    def save(name: str) -> None:
        (folder / f"{name}.json").write_text(json.dumps({"at": 1, "document": {"proposal": words}}))

    def told_names() -> list[str]:
        found = asked(rig, OPER, "/v1/events?kinds=policy.*")["events"]
        return sorted(event["data"]["simulation"] for event in found)

    for name in names:
        save(name)
    (folder / "notes.json").write_text("{}")
    rig.hub.get(EventService).look()
    assert told_names() == names
    rig.hub.get(EventService)._sources = sources(SourceStores(rig.store, rig.hub.get(EventService).store, folder))
    later(rig, 4 * 86400)
    save(names[0])
    rig.hub.get(EventService).look()
    assert told_names() == names
    save("d" * 12)
    rig.hub.get(EventService).look()
    assert told_names() == [*names, "d" * 12]


def test_a_saved_simulation_that_proposes_a_change_is_told_once(rig: Rig) -> None:
    """A file without a proposal, or that is no simulation, tells nothing."""
    folder = Path(rig.hub.config.hub.state_dir) / "simulations"
    folder.mkdir(parents=True)
    words: dict[str, Any] = {
        "change": "limits=0.9", "scheduler": "easy", "jobs": 100, "mean_wait_s": -60.0, "low_s": -90.0, "high_s": -10.0,
        "later": 0.2, "among": 3,
    }  # fmt: skip
    for name, text in (
        ("a" * 12, {"at": 1, "document": {}}),
        ("b" * 12, {"at": 2, "document": {"proposal": words}}),
        ("c" * 12, ["no", "simulation"]),
    ):
        (folder / f"{name}.json").write_text(json.dumps(text))
        for _ in range(2):
            rig.hub.get(EventService).look()
            later(rig, 60)
    (event,) = asked(rig, OPER, "/v1/events?kinds=policy.*")["events"]
    assert (event["data"]["simulation"], event["data"]["change"], event["data"]["low_s"]) == (
        "b" * 12,
        "limits=0.9",
        -90,
    )
    assert told(rig, ALICE, "policy.*") == []
