"""What a hub that stands by answers and refuses: over real HTTP, and beside a hub that serves from a real lake."""

import contextlib
import re
import socket
import tempfile
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from fastapi.routing import APIRoute
from tests.integration.hub.rig import Answer, Rig, running_hub
from tests.integration.hub.sign_in.browser import SAME, Browser, link_of
from tests.integration.store.test_lake import lake_keys

from gpuwaste.core.errors import StoreError
from gpuwaste.core.hub_config import HubConfig
from gpuwaste.core.units import DAY_S
from gpuwaste.hub.mount import answered_standing_by
from gpuwaste.hub.server import HubSockets, WebServer, open_tcp
from gpuwaste.hub.standby import Standby
from gpuwaste.hub.standby_gate import OWN, SIGN_IN, StandbyGate
from gpuwaste.hub.store_choice import lake_location
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.ledger.judging import Judging
from gpuwaste.ledger.ledger import LedgerSettings
from gpuwaste.net.connection_limiter import Listener
from gpuwaste.store.hub.lake_store import LakeReader
from gpuwaste.store.lake_database import LakeLocation
from gpuwaste.testing.clocks import StandingClock
from gpuwaste.testing.fake_slurm import FakeSlurm
from gpuwaste.testing.hub_rows import HOUR, batch, hour, record
from gpuwaste.testing.postgres_server import PostgresServer

pytestmark = [pytest.mark.long, pytest.mark.sockets]
ALICE, OPER = 1001, 1004
MAX_BODY = 1 << 20
LOOPBACK = "http://127.0.0.1"
PAGES = ("/me", "/me.json", "/jobs/7", "/helpdesk", "/verdicts", "/users/alice", "/jobs/8", "/accounts/proj1")
NOT_HERS = PAGES[-2:]


@pytest.fixture
def gated(hub: Rig) -> Iterator[Rig]:
    """Let the hub's application answer through the gate, on a port of its own."""
    tcp = open_tcp("127.0.0.1:0")
    server, own = WebServer(StandbyGate(MAX_BODY, hub.hub.app), tcp), hub.port
    hub.port = tcp.getsockname()[1]
    thread = threading.Thread(target=server.run, kwargs={"signals": False})
    thread.start()
    yield hub
    server.stop()
    thread.join(30)
    hub.port = own


def passed_on(answer: Answer) -> bool:
    """Tell whether an answer sends a client on to the next hub."""
    return (answer.status, answer.headers.get("gpuwaste-role")) == (503, "stands-by")


def routes(hub: Rig) -> list[tuple[str, str]]:
    """Return method and path of each route, with something in the place of each parameter."""
    found = [route for route in hub.hub.app.routes if isinstance(route, APIRoute)]
    return [(method, re.sub("{[^}]*}", "7", route.path)) for route in found for method in route.methods or ()]


def test_only_named_reads_are_answered(gated: Rig) -> None:
    """Each route: one that is neither named nor says so itself sends the client on; no credential is looked at."""
    every = routes(gated)
    gets = {target for method, target in every if method == "GET"}
    patterns = (*OWN, *answered_standing_by())
    named = {pattern: {target for target in gets if re.fullmatch(pattern, target)} for pattern in patterns}
    nothing = [pattern for pattern, targets in named.items() if not targets]
    assert nothing == [r"/openapi\.json"], "each name is of a route; the description is FastAPI's own"
    assert set(SIGN_IN) <= {target for method, target in every if method == "POST"}
    for method, target in every:
        answer = gated.send(method, target)
        assert answer.headers["gpuwaste-role"] == "stands-by"
        answered = target in SIGN_IN if method == "POST" else target in set().union(*named.values())
        assert passed_on(answer) == (not answered or method not in {"GET", "POST"}), target
    assert gated.get(ALICE, "/v1/report").status == 200


def test_a_refusal_says_what_and_when(gated: Rig) -> None:
    """A batch as large as may be, one that is larger, and a page: one line, and when to come back."""
    only_reads, no_room = "answers only reads of stored data", "accepts no batches now"
    for method, target, body, words in (
        ("POST", "/v1/hours", b"x" * MAX_BODY, no_room),
        ("POST", "/v1/verdicts", b"", no_room),
        ("POST", "/v1/predict", b"{}", only_reads),
        ("GET", "/now.json", b"", only_reads),
        ("DELETE", "/v1/hours", b"", only_reads),
    ):
        answer = gated.send(method, target, body)
        assert passed_on(answer)
        assert int(answer.headers["retry-after"]) > 0
        assert answer.json["error"].startswith(f"this hub is a standby and {words}")
    assert gated.hours() == []


@pytest.mark.parametrize(("method", "target"), [("GET", "/now"), ("POST", "/jobs/7/appeal"), ("GET", "/simulations")])
def test_a_page_of_the_hub_that_serves_is_refused_as_a_page(gated: Rig, method: str, target: str) -> None:
    """A browser gets HTML under the pages' policy, whoever asks, and when to try again."""
    answer = gated.send(method, target)
    assert passed_on(answer)
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert b"<h1>This hub is a standby</h1>" in answer.body
    assert int(answer.headers["retry-after"]) > 0


def test_a_path_that_only_looks_like_a_named_one_is_refused(gated: Rig) -> None:
    """What comes after a named path, and other ways to write one."""
    for target in (
        "/v1/report/",
        "/v1/jobs/7/curves/",
        "/me/",
        "/enter.jsx",
        "/static/../now",
        "/v1/jobs/7/",
        "/v1/history/snapshot",
        "//v1/report",
        "/V1/report",
    ):
        answer = gated.send("GET", target)
        assert passed_on(answer), target
        assert answer.headers["cache-control"] == "no-store"


def test_who_connects_between_two_servers_waits_for_the_second() -> None:
    """Over TCP and the Unix socket: the copies of the first server are closed, the queue stays as long as it was."""
    with tempfile.TemporaryDirectory(prefix="gwsock", dir="/tmp") as short:
        sockets = HubSockets.open(HubConfig(listen="127.0.0.1:0", socket=f"{short}/s"))
        copies = sockets.copies()
        for own, copy in ((sockets.tcp, copies.tcp), (sockets.unix, copies.unix)):
            assert isinstance(own, Listener)
            assert isinstance(copy, Listener)
            copy.listen(1)
            assert copy.queue == own.queue > 1
            copy.close()
            with socket.socket(own.family) as client:
                client.settimeout(20)
                client.connect(own.getsockname())
                client.sendall(b"x")
                with own, own.accept()[0] as served:
                    assert served.recv(1) == b"x"


WINDOW = f"start={HOUR - 9}&end={HOUR + 7200}"
CHANGING = f"/v1/report?user=alice&{WINDOW}", "/v1/jobs/7", "/v1/history?after=0"
TARGETS = (
    *CHANGING, f"/v1/report?cluster=all&{WINDOW}", "/v1/jobs/8", "/v1/top?since=0", "/v1/events?after=0",
    "/v1/verdicts", "/v1/verdicts/score?since=0", "/v1/notices", "/v1/views",
    f"/v1/views/waste?start={HOUR - 100 * DAY_S}&end={HOUR + DAY_S}", f"/v1/jobs/{'9' * 9}",
)  # fmt: skip


def test_slurm_that_hangs_delays_no_takeover(postgres: PostgresServer, tmp_path: Path) -> None:
    """A hub that waits for the cluster's name leaves off at once, and serves nothing when the name comes late."""
    asked, answers = threading.Event(), threading.Event()

    class HangingSlurm(FakeSlurm):
        def cluster_name(self) -> str:
            asked.set()
            answers.wait(60)
            return "gw"

    with running_hub(tmp_path, hub_keys=lake_keys(postgres, tmp_path)) as hub:
        opened: list[str] = []

        def sockets() -> HubSockets:
            opened.append("now")
            return HubSockets(open_tcp("127.0.0.1:0"), None, None)

        ports = replace(hub.ports, slurm=HangingSlurm())
        standby = Standby(hub.hub.config, ports, location_of(hub), sockets)
        standby.worker.start()
        assert asked.wait(60)
        standby.end()
        assert standby.worker.alive, "it still waits for Slurm"
        answers.set()
        standby.worker.stop(60)
        assert (standby.worker.alive, opened) == (False, [])


def location_of(hub: Rig) -> LakeLocation:
    found = lake_location(hub.hub.config.hub)
    assert found is not None
    return found


@contextlib.contextmanager
def standing_by(served: Rig) -> Iterator[tuple[Rig, Standby]]:
    """Let a second hub stand by on the lake of one that serves."""
    tcp = open_tcp("127.0.0.1:0")
    sockets = HubSockets(tcp, None, None)
    standby = Standby(served.hub.config, served.ports, location_of(served), lambda: sockets)
    standby.look()
    try:
        yield replace(served, port=tcp.getsockname()[1], _nonce=10**6), standby
    finally:
        standby.end()
        tcp.close()


def test_it_answers_what_the_hub_that_serves_answers(postgres: PostgresServer, tmp_path: Path) -> None:
    """Each document, byte for byte, and the next one after each change of the lake; a change of thresholds too.

    While the lake has another version's tables nothing is answered, and afterwards all is again.
    """
    clock = StandingClock(HOUR + 3 * DAY_S)
    with running_hub(tmp_path, clock=clock, hub_keys=lake_keys(postgres, tmp_path)) as hub:
        upsert_jobs(hub.store, [record(7, "alice"), record(8, "bob", "proj2")])
        assert hub.post(batch(hour(7), hour(8, gpu_uuid="GPU-b"))).status == 200
        hub.hub.get(Judging).step(threading.Event())
        with standing_by(hub) as (beside, standby):
            same(hub, beside, TARGETS, OPER)
            same(hub, beside, TARGETS[:5], ALICE)
            upsert_jobs(hub.store, [record(9, "alice")])
            assert hub.post(batch(hour(9, gpu_uuid="GPU-c"), hour(7, seq=2, util_ms={}))).status == 200
            same(hub, beside, CHANGING, ALICE)
            before = hub.get(ALICE, CHANGING[0]).json["totals"]
            hub.hub.get(Judging).judge_by(LedgerSettings(low_below_pct=60))
            hub.hub.get(Judging).step(threading.Event())
            assert hub.get(ALICE, CHANGING[0]).json["totals"] != before
            standby.look()
            same(hub, beside, CHANGING[:1], ALICE)
            versions(hub, "version + 1")
            standby.look()
            refused = beside.get(ALICE, CHANGING[0])
            assert (passed_on(refused), "cannot read the lake" in refused.json["error"]) == (True, True)
            assert passed_on(beside.post(batch(hour(10))))
            versions(hub, "version - 1")
            standby.look()
            same(hub, beside, CHANGING[:1], ALICE)
            health = beside.get(ALICE, "/v1/health")
            assert (passed_on(health), health.json["role"]) == (True, "stands by")
            assert b"gpuwaste_hub_serving 0.0\n" in beside.get(ALICE, "/metrics").body
            assert b"gpuwaste_hub_accounting_success" not in beside.get(ALICE, "/metrics").body
            with pytest.raises(StoreError, match="only reads"):
                LakeReader.open_lake(location_of(hub), clock, tmp_path / "scratch").set_mark("x", 1)


def test_who_is_signed_in_at_one_hub_is_at_each(postgres: PostgresServer, tmp_path: Path) -> None:
    """A link of either hub opens a session at the other; pages are the same bytes; signing out at one ends it at both.

    The hub that stands by is opened anew meanwhile, as after an error of the lake or when it takes over.
    """
    clock = StandingClock(HOUR + 3 * DAY_S)
    with running_hub(tmp_path, clock=clock, hub_keys=lake_keys(postgres, tmp_path)) as hub:
        upsert_jobs(hub.store, [record(7, "alice"), record(8, "bob", "proj2")])
        assert hub.post(batch(hour(7), hour(8, gpu_uuid="GPU-b"))).status == 200
        hub.hub.get(Judging).step(threading.Event())
        with standing_by(hub) as (beside, standby):
            for giver, taker in ((hub, beside), (beside, hub)):
                there = Browser(taker, LOOPBACK)
                entered = there.enter(link_of(giver, ALICE))
                assert entered.status == 303, entered.body
                assert "path=/" in entered.headers["Set-Cookie"].lower()
                both = [Browser(one, LOOPBACK, cookies=dict(there.cookies)) for one in (giver, taker)]
                for target in PAGES:
                    here, beyond = (one.send("GET", target) for one in both)
                    assert (here.status, here.body) == (beyond.status, beyond.body), target
                    assert here.status == (404 if target in NOT_HERS else 200), target
                standby._close()
                assert passed_on(beside.send("GET", "/me"))
                standby.look()
                assert [one.send("GET", "/me").status for one in both] == [200, 200]
                left = there.send("POST", "/sign-out", headers=SAME)
                assert (left.status, b"The session has ended" in left.body) == (200, True)
                assert [one.send("GET", "/me").status for one in both] == [401, 401], "their cookies are still sent"
            used = link_of(hub, ALICE)
            assert Browser(beside, LOOPBACK).enter(used).status == 303
            assert b"This link was used already" in Browser(hub, LOOPBACK).enter(used).body
            assert b"gpuwaste_hub_page_sessions 1.0" in beside.get(ALICE, "/metrics").body
            foreign = beside.send("POST", "/enter", b"link=x", {"Sec-Fetch-Site": "cross-site"})
            assert foreign.status == 403


def versions(hub: Rig, number: str) -> None:
    """Let the lake say that its tables are another version's."""
    with hub.store.writing() as db:
        db.execute(f"UPDATE schema_version SET version = {number}")  # noqa: S608 the test's own words


def same(hub: Rig, beside: Rig, targets: Sequence[str], uid: int) -> None:
    """Compare the answers of two hubs."""
    for target in targets:
        found, wanted = beside.get(uid, target), hub.get(uid, target)
        assert (found.status, found.body) == (wanted.status, wanted.body), target
