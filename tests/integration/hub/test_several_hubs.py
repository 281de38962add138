"""Several hubs on one lake and a real PostgreSQL: one serves, all take batches, and nothing is lost or twice."""

import contextlib
import getpass
import itertools
import os
import signal
import socket
import threading
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlencode

import pytest
from tests.integration.hub.test_daemon import ENVELOPE, one, request_of, stored

from gpuwaste.core.errors import RetryableWireError
from gpuwaste.core.units import HOUR_S
from gpuwaste.ledger.hour import encode_hour
from gpuwaste.net.batch import Batch, encode_batch
from gpuwaste.net.hub_client import BusyError, HubClient
from gpuwaste.net.munge_credentials import Munge, MungeIssuer
from gpuwaste.store.lake_database import LakeDatabase, LakeLocation
from gpuwaste.testing.cluster_process import wait_until
from gpuwaste.testing.hub_rows import HOUR, hour
from gpuwaste.testing.lone_hub import LoneHub, munged_path
from gpuwaste.testing.patience import patient
from gpuwaste.testing.postgres_server import PostgresServer

pytestmark = [
    pytest.mark.long,
    pytest.mark.sockets,
    pytest.mark.skipif(munged_path() is None, reason="munged is not installed (Debian: munge)"),
]
TAKEOVER_S = 90  # lease, look, start, on a host that does other things too


@pytest.fixture
def hubs(tmp_path: Path, munge: str, postgres: PostgresServer) -> Iterator[tuple[LoneHub, LoneHub]]:
    """Run a hub, and let a second one stand by, which answers reads."""
    data = tmp_path / "lake"
    data.mkdir()
    keys = {"store": "lake", "lake_catalog": postgres.new_database(), "lake_data": str(data)}
    with contextlib.ExitStack() as ends:
        made = []
        for name in ("a", "b"):
            (tmp_path / name).mkdir()
            hub = LoneHub(tmp_path / name, munge, hub=keys)
            ends.callback(end, hub)
            made.append(hub)
        first, second = made
        first.start()
        second.stand_by()
        wait_until(lambda: second.words("hub-takes-batches:") > 0, TAKEOVER_S, "the other hub to take batches")
        yield first, second


def end(hub: LoneHub) -> None:
    """End a hub, also one that a test has stopped."""
    if hub.process is not None and hub.process.poll() is None:
        hub.process.send_signal(signal.SIGCONT)
        hub.stop()


def agent(*hubs: LoneHub) -> HubClient:
    """Return an agent that knows these hubs."""
    issuer = MungeIssuer(Munge(hubs[0].munge_socket), hub_uid=os.geteuid())
    return HubClient(" ".join(hub.url for hub in hubs), issuer, timeout_s=5)


def ship(client: HubClient, job: int) -> None:
    """Send a row until it is acknowledged, as an agent's outbox does."""

    def sent() -> bool:
        with contextlib.suppress(RetryableWireError):
            return client.post_hours(ENVELOPE, one(job)).accepted == 1
        return False

    wait_until(sent, TAKEOVER_S, f"a hub to take the row of job {job}", poll_s=0.5)


def merged(hub: LoneHub) -> bool:
    """Tell whether nothing waits, as a hub has it; one that does not answer in time is asked again."""
    with contextlib.suppress(OSError):
        return hub.metric("gpuwaste_hub_inbox_batches") == 0
    return False


def holds(hub: LoneHub, rows: int) -> None:
    """Wait until nothing is left in the inbox; all rows are in the table then, and none twice."""
    wait_until(lambda: merged(hub), TAKEOVER_S, "the inbox to be merged", poll_s=1.0)
    assert stored(hub) == rows


def jobs(hub: LoneHub) -> list[int]:
    """Return the job of each row of the lake's table, in order."""
    location = LakeLocation(hub.hub["lake_catalog"], Path(hub.hub["lake_data"]))
    with contextlib.closing(LakeDatabase.open_reader(location, "hub")) as db:
        return [job for (job,) in db.execute("SELECT job_id FROM hours ORDER BY job_id").fetchall()]


def exchange(hub: LoneHub, method: str, path: str, body: str = "", **headers: str) -> tuple[int, str]:
    """Send a request as a browser does; return the status and the cookie that is set."""
    connection = HTTPConnection("127.0.0.1", hub.port, timeout=patient(20))
    with contextlib.closing(connection):
        connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        answer.read()
        return answer.status, answer.headers.get("Set-Cookie", "").partition(";")[0]


def sign_in(hub: LoneHub, link: str) -> str:
    """Open a link at a hub, and return the session's cookie."""
    status, cookie = exchange(hub, "POST", "/enter", urlencode({"link": link}), Sec_Fetch_Site="same-origin")
    assert status == 303
    return cookie


def page(hub: LoneHub, cookie: str) -> int:
    """Return the status of the reader's own page."""
    return exchange(hub, "GET", "/me", Cookie=cookie)[0]


def test_a_hub_that_is_killed_is_replaced(hubs: tuple[LoneHub, LoneHub]) -> None:
    """Killed between batches, twice: each acknowledged row is there once; the killed one stands by when it is back.

    Batches go to the hub that stands by, which takes them also while none serves. A reader of pages, signed in at one
    hub by the other one's link, stays so.
    """
    first, second = hubs
    client = agent(second, first)
    cookie = sign_in(second, str(agent(first).post("/v1/web/link", {})["url"]))
    assert [page(hub, cookie) for hub in hubs] == [200, 200]
    for job in range(1, 6):
        ship(client, job)
    holds(first, 5)
    assert (second.metric("gpuwaste_hub_serving"), first.metric("gpuwaste_hub_serving")) == (0, 1)
    assert second.metric("gpuwaste_hub_inbox_taken_batches_total") == 5
    first.kill()
    for job in range(4, 9):
        ship(client, job)
    assert page(second, cookie) == 200
    wait_until(second.serves, TAKEOVER_S, "the other hub to serve")
    assert page(second, cookie) == 200
    assert second.words("hub-answers-reads:") == 1
    holds(second, 8)
    first.stand_by()
    second.kill()
    for job in range(8, 11):
        ship(client, job)
    wait_until(first.serves, TAKEOVER_S, "the first hub to serve again")
    holds(first, 10)


def test_a_hub_that_stood_still_writes_nothing_when_it_goes_on(hubs: tuple[LoneHub, LoneHub]) -> None:
    """SIGSTOP until another has taken over: what it was sent meanwhile is not acknowledged, and it ends with 1."""
    first, second = hubs
    client = agent(*hubs)
    ship(client, 1)
    assert first.process is not None
    first.process.send_signal(signal.SIGSTOP)
    body = encode_batch(ENVELOPE, one(99))
    with socket.create_connection(("127.0.0.1", first.port), 20) as late:
        late.sendall(request_of(first, body) + body)
        ship(client, 2)
        wait_until(second.serves, TAKEOVER_S, "the other hub to serve")
        first.process.send_signal(signal.SIGCONT)
        assert first.process.wait(60) == 1
        late.settimeout(30)
        with contextlib.suppress(ConnectionResetError):
            assert b"200 OK" not in late.recv(65536)
    assert first.words("hub-lost-lake") == 1
    holds(second, 2)


def test_a_hub_that_ends_in_order_leaves_the_lake_to_the_next(hubs: tuple[LoneHub, LoneHub]) -> None:
    """SIGTERM ends with 0, and the lease is free before its time is over."""
    first, second = hubs
    ship(agent(first), 1)
    assert first.kill(signal.SIGTERM) == 0
    wait_until(second.serves, TAKEOVER_S, "the other hub to serve")
    assert stored(second) == 1


def test_without_postgresql_nothing_is_acknowledged_and_nothing_is_lost(
    hubs: tuple[LoneHub, LoneHub], postgres: PostgresServer
) -> None:
    """A killed PostgreSQL: batches are refused for later; when it is back, one of the hubs takes them."""
    client = agent(*hubs)
    ship(client, 1)
    postgres.kill()
    with pytest.raises(RetryableWireError):
        client.post_hours(ENVELOPE, one(2))
    postgres.start()
    for job in (1, 2, 3):
        ship(client, job)
    wait_until(lambda: any(hub.serves() for hub in hubs), TAKEOVER_S, "a hub to serve")
    (running,) = [hub for hub in hubs if hub.serves()]
    holds(running, 3)


def test_a_hub_that_stands_by_answers_reads_takes_batches_and_nothing_else(hubs: tuple[LoneHub, LoneHub]) -> None:
    """What was acknowledged a moment ago is in its answers, which are the other's; what it takes is soon in both.

    Commands that know both hosts get from the hub that serves what the other one refuses.
    """
    first, second = hubs
    holder, reader = agent(first), agent(second)
    assert holder.post_hours(ENVELOPE, Batch((encode_hour(hour(1, final=True)),))).accepted == 1
    assert reader.get("/v1/history", {"after": 0})["events"] == holder.get("/v1/history", {"after": 0})["events"] != []
    window: dict[str, str | int] = {"start": HOUR - HOUR_S, "end": HOUR + HOUR_S, "user": getpass.getuser()}
    documents = [client.get("/v1/report", window) for client in (holder, reader)]
    assert [one.pop("generated") > HOUR for one in documents] == [True, True]
    assert documents[0] == documents[1]
    with pytest.raises(BusyError, match="is a standby") as refused:
        reader.post("/v1/predict", {"requests": []})
    assert refused.value.retry_after_s > 0
    ship(reader, 2)
    assert HubClient(f"{second.url} {first.url}").get("/v1/health")["role"] == "serves"
    holds(first, 2)
    wait_until(lambda: merged(second), TAKEOVER_S, "the other to see it merged", poll_s=1.0)


def test_three_hubs_take_batches_and_two_of_them_are_killed(
    hubs: tuple[LoneHub, LoneHub], tmp_path: Path, munge: str
) -> None:
    """Agents send to all three without a pause; one that stands by and then the one that serves are killed with -9.

    What any of them has acknowledged is in the table exactly once.
    """
    first, second = hubs
    (tmp_path / "c").mkdir()
    third = LoneHub(tmp_path / "c", munge, hub=second.hub)
    acknowledged: list[int] = []
    over = threading.Event()

    def work(number: int) -> None:
        urls = [first, second, third][number:] + [first, second, third][:number]
        client = agent(*urls)
        for job in itertools.count(1000 * (number + 1)):
            if over.is_set():
                return
            ship(client, job)
            acknowledged.append(job)

    def more(count: int) -> None:
        wanted = len(acknowledged) + count
        wait_until(lambda: len(acknowledged) >= wanted, TAKEOVER_S, f"{count} more batches", poll_s=0.1)

    try:
        third.stand_by()
        threads = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(3)]
        for thread in threads:
            thread.start()
        more(10)
        second.kill()
        more(10)
        second.stand_by()
        more(10)
        first.kill()
        more(10)
        wait_until(lambda: second.serves() or third.serves(), TAKEOVER_S, "another hub to serve")
        more(10)
        over.set()
        for thread in threads:
            thread.join(TAKEOVER_S)
        (serving,) = [hub for hub in (second, third) if hub.serves()]
        holds(serving, len(acknowledged))
        assert jobs(serving) == sorted(acknowledged)
        assert serving.metric("gpuwaste_hub_inbox_merged_batches_total") > 0
        assert serving.words("batch-set-aside") == 0
    finally:
        over.set()
        end(third)
