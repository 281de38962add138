"""Pages that refresh themselves: who is told of what, for how long, and how many streams there may be."""

import re
import socket
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.integration.hub.rig import Rig, running_hub
from tests.unit.act.events.stream import node_silent

from gpuwaste.act.events.event_service import EventService
from gpuwaste.core.errors import StoreError
from gpuwaste.core.hub_config import WebConfig
from gpuwaste.hub.places import OF_USER
from gpuwaste.jobs.cluster_facts import ClusterFacts
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.ledger.now.now_reads import NowReads
from gpuwaste.testing.clocks import ShiftedClock
from gpuwaste.testing.cluster_process import wait_until
from gpuwaste.testing.fake_slurm import FakeSlurm
from gpuwaste.testing.hub_rows import record

ALICE, BOB, OPER = 1001, 1002, 1004
NOW = 1_700_000_000
RUNNING: dict[str, Any] = {"end": None, "state": "RUNNING", "elapsed_s": 60}


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    """Run a hub with a running job 7 of alice and 8 of bob."""
    slurm = FakeSlurm(levels={"oper": "Operator"})
    with running_hub(tmp_path, slurm, clock=ShiftedClock(NOW), web=WebConfig(idle_h=1.0)) as found:
        found.hub.get(ClusterFacts).refresh()
        upsert_jobs(found.store, [record(7, "alice", **RUNNING), record(8, "bob", "proj2", **RUNNING)])
        yield found


class Stream:
    """A stream of a page as a browser reads it."""

    def __init__(self, rig: Rig, cookie: str, target: str) -> None:
        self._socket = socket.create_connection(("127.0.0.1", rig.port), 30)
        head = f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1:{rig.port}\r\nCookie: {cookie}\r\n"
        self._socket.sendall(f"{head}Sec-Fetch-Site: same-origin\r\n\r\n".encode())
        self.text = ""
        self.status = int(self.until("\r\n\r\n").split(" ")[1])

    def until(self, words: str, seconds: float = 30.0) -> str:
        """Read until these words came, or the stream has ended."""
        self._socket.settimeout(seconds)
        while words not in self.text:
            part = self._socket.recv(4096).decode()
            if not part:
                break
            self.text += part
        return self.text

    def close(self) -> None:
        """Go away."""
        self._socket.close()


@contextmanager
def following(rig: Rig, cookie: str, target: str) -> Iterator[Stream]:
    stream = Stream(rig, cookie, target)
    try:
        if stream.status == 200:
            stream.until("retry: ")
        yield stream
    finally:
        stream.close()


def test_a_hub_that_stops_ends_its_streams(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    """A page that follows holds up no stop, and leaves no fault in the log."""
    with following(rig, rig.cookie(OPER), "/now/changes") as page:
        rig.server.stop()
        page.until("the end of the stream")
    assert [record.message for record in caplog.records if record.name.startswith("uvicorn")] == []


@pytest.mark.long
def test_a_reader_is_told_of_their_own_jobs_alone(rig: Rig) -> None:
    """Bob's job ends: bob and the operator are told, alice gets signs of life alone; and no page is told what."""
    cookies = {uid: rig.cookie(uid) for uid in (ALICE, BOB, OPER)}
    with (
        following(rig, cookies[ALICE], "/now/changes") as alice,
        following(rig, cookies[ALICE], "/jobs/7/changes") as job,
        following(rig, cookies[BOB], "/now/changes") as bob,
        following(rig, cookies[OPER], "/now/changes") as oper,
        following(rig, cookies[OPER], "/jobs/7/changes") as other,
    ):
        upsert_jobs(rig.store, [record(8, "bob", "proj2")])
        rig.hub.get(EventService).store.tell([node_silent()])
        for stream in (bob, oper):
            assert "event: changed\ndata: \n\n" in stream.until("changed")
        for stream in (alice, job, other):
            assert "changed" not in stream.until("\n:\n")
        upsert_jobs(rig.store, [record(7, "alice")])
        for stream in (alice, job, other):
            assert "changed" in stream.until("changed")
        assert "bob" not in oper.text + bob.text


def test_what_came_between_a_page_and_its_stream_is_news(rig: Rig) -> None:
    """The page says how far the events were when it was read; what came before is no news."""
    cookie = rig.cookie(ALICE)
    page = rig.send("GET", "/jobs/7", headers={"Cookie": cookie}).body.decode()
    (target,) = re.findall(r'data-follow="([^"]+)"', page)
    upsert_jobs(rig.store, [record(7, "alice")])
    with following(rig, cookie, target) as late:  # nobody followed until now: the place of the page alone tells it
        assert "changed" in late.until("changed")
    known = f"/jobs/7/changes?after={rig.hub.get(EventService).store.last(0)}"
    with following(rig, cookie, known) as quiet, following(rig, cookie, "/jobs/7/changes?after=-1e9") as odd:
        assert "changed" not in quiet.until("\n:\n") + odd.until("\n:\n")


@pytest.mark.long
def test_a_store_that_refuses_ends_the_stream_without_a_traceback(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The browser connects again; the log names no bug of ours."""

    def refuse() -> None:
        raise StoreError("the disk is full")

    monkeypatch.setattr(rig.hub.get(NowReads), "renew", refuse)
    with following(rig, rig.cookie(OPER), "/now/changes") as oper:
        rig.hub.get(EventService).store.tell([node_silent()])
        assert "changed" not in oper.until("never", 30)
    assert [record.levelname for record in caplog.records if record.exc_info] == []


def test_a_job_that_is_not_the_reader_s_is_not_found(rig: Rig) -> None:
    """As one that is not there; nobody who is not signed in gets a stream, nor does another site's script."""
    with following(rig, rig.cookie(BOB), "/jobs/7/changes") as foreign:
        assert foreign.status == 404
    with following(rig, rig.cookie(BOB), "/jobs/99/changes") as none:
        assert none.status == 404
    assert foreign.text.partition("\r\n\r\n")[2] == none.text.partition("\r\n\r\n")[2]
    with following(rig, "gpuwaste=" + "x" * 43, "/now/changes") as nobody:
        assert nobody.status == 401
    cookie = {"Cookie": rig.cookie(ALICE), "Sec-Fetch-Site": "cross-site"}
    assert rig.send("GET", "/now/changes", headers=cookie).status == 403
    assert rig.get(ALICE, "/now/changes").status == 401, "a page knows no munge"


def test_a_request_that_is_not_for_this_hub_gets_no_stream(rig: Rig) -> None:
    """Another name in Host: refused as for every page, before anybody is asked who they are."""
    headers = {"Cookie": rig.cookie(ALICE), "Host": "evil.example.org", "Sec-Fetch-Site": "same-origin"}
    answer = rig.send("GET", "/now/changes", headers=headers)
    assert (answer.status, answer.body) == (rig.send("GET", "/now", headers=headers).status, b"")


@pytest.mark.long
def test_it_ends_when_the_reader_signs_out(rig: Rig) -> None:
    """Within seconds, and says so."""
    cookie = rig.cookie(ALICE)
    with following(rig, cookie, "/now/changes") as stream:
        headers = {"Cookie": cookie, "Sec-Fetch-Site": "same-origin"}
        assert rig.send("POST", "/sign-out", b"", headers).status in {200, 303}
        assert stream.until("never").rstrip("0\r\n").endswith("event: over\ndata: ")


@pytest.mark.long
def test_it_ends_with_the_session_and_does_not_prolong_it(rig: Rig) -> None:
    """A page that is open and follows counts as unused, as do the pages that it fetches by itself."""
    assert isinstance(rig.clock, ShiftedClock)
    cookie = rig.cookie(ALICE)
    with following(rig, cookie, "/now/changes") as stream:
        rig.clock.steady_later_s += 3000
        stream.until("\n:\n")
        refresh = {"Cookie": cookie, "Gpuwaste-Refresh": "1", "Sec-Fetch-Site": "same-origin"}
        assert rig.send("GET", "/now", headers=refresh).status == 200
        rig.clock.steady_later_s += 700
        assert "event: over" in stream.until("over")
    assert rig.send("GET", "/now", headers={"Cookie": cookie}).status == 401


def test_streams_that_are_asked_for_at_once_are_bounded_without_a_traceback(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    """As many as a user may have are open, those beyond are refused, and the log names no bug of ours."""
    cookie, request = rig.cookie(ALICE), "GET /now/changes HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nCookie: {}\r\n\r\n"
    sockets = [socket.create_connection(("127.0.0.1", rig.port), 30) for _ in range(4 * OF_USER)]
    try:
        for one in sockets:
            one.sendall(request.format(rig.port, cookie).encode())
        found = Counter(int(one.recv(4096).split()[1]) for one in sockets)
        assert found == {200: OF_USER, 429: len(sockets) - OF_USER}
    finally:
        for one in sockets:
            one.close()
    assert [record.levelname for record in caplog.records if record.exc_info] == []


def test_streams_are_bounded_for_each_reader(rig: Rig) -> None:
    """One more than they may have is refused; others get theirs; when one ends there is room again."""
    cookie = rig.cookie(ALICE)
    streams = [Stream(rig, cookie, "/now/changes") for _ in range(OF_USER)]
    try:
        for stream in streams:
            stream.until("retry: ")
        with following(rig, cookie, "/now/changes") as refused:
            assert refused.status == 429
        with following(rig, rig.cookie(BOB), "/now/changes") as other:
            assert other.status == 200
        streams.pop().close()

        def free() -> bool:
            with following(rig, cookie, "/now/changes") as again:
                return again.status == 200

        wait_until(free, 30, "room for another stream")
    finally:
        for stream in streams:
            stream.close()
