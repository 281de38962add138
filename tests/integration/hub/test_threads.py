"""Threads of requests: what hangs in one pool keeps nobody waiting in another, and one user fills none."""

import contextlib
import re
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from inspect import iscoroutinefunction
from pathlib import Path
from typing import Any

import pytest
from anyio.to_thread import current_default_thread_limiter  # noqa: TID251 the pool that nothing may need
from fastapi import Response
from fastapi.routing import APIRoute
from tests.integration.hub.rig import Rig, running_hub

from gpuwaste.core.hub_config import WebConfig
from gpuwaste.core.scope import Scope
from gpuwaste.core.thread_pool import REPORTS_AT_ONCE
from gpuwaste.hub.admission_control import MOST
from gpuwaste.hub.exchange import REPORTS_OF_USER
from gpuwaste.hub.places import OF_USER
from gpuwaste.jobs.cluster_facts import ClusterFacts
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.ledger.reports.document_queries import DocumentQueries
from gpuwaste.testing.cluster_process import wait_until
from gpuwaste.testing.fake_slurm import FakeSlurm
from gpuwaste.testing.hub_rows import HOUR, record
from gpuwaste.testing.patience import patient

ALICE, BOB, OPER = 1001, 1002, 1004
CONNECTIONS = 200


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    """Run a hub with job 7 of alice and 8 of bob."""
    with running_hub(tmp_path, FakeSlurm(levels={"oper": "Operator"}), web=WebConfig()) as found:
        found.hub.get(ClusterFacts).refresh()
        upsert_jobs(found.store, [record(7, "alice"), record(8, "bob", "proj2")])
        yield found


@contextlib.contextmanager
def flood(rig: Rig, cookie: str, targets: list[str]) -> Iterator[list[socket.socket]]:
    """Send requests of one session at once, each on a connection of its own."""
    opened = []
    try:
        for target in targets:
            opened.append(socket.create_connection(("127.0.0.1", rig.port), patient(60)))
            head = f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1:{rig.port}\r\nCookie: {cookie}\r\n"
            opened[-1].sendall(f"{head}Sec-Fetch-Site: same-origin\r\n\r\n".encode())
        yield opened
    finally:
        for one in opened:
            one.close()


def status(one: socket.socket) -> int:
    return int(one.recv(65536).split()[1])


@contextlib.contextmanager
def all_reports_taken(rig: Rig) -> Iterator[None]:
    """Hold every place in which the store is asked for a report, as six that hang would."""
    places = rig.hub.get(DocumentQueries)._turns
    for _ in range(REPORTS_AT_ONCE):
        assert places.acquire(timeout=patient(30))
    try:
        yield
    finally:
        for _ in range(REPORTS_AT_ONCE):
            places.release()


def test_streams_of_one_session_need_no_place_of_reports_and_are_counted_first(rig: Rig) -> None:
    """Of 200 connections of alice four follow her job, the others get 429, while no report can be made.

    Health, metrics, the sign-in of bob and his page of the cluster are answered all the while.
    """
    cookie = rig.cookie(ALICE)
    with all_reports_taken(rig), flood(rig, cookie, ["/jobs/7/changes"] * CONNECTIONS) as sent:
        for target in ("/v1/health", "/metrics"):
            assert rig.send("GET", target).status == 200
        assert rig.page(BOB, "/now").status == 200
        assert Counter(map(status, sent)) == {200: OF_USER, 429: CONNECTIONS - OF_USER}


@pytest.mark.parametrize("target", ["/jobs/7", "/me.json"])
def test_a_session_that_hangs_in_pages_is_refused_without_a_thread(rig: Rig, target: str) -> None:
    """Of 200 connections all but eight get 429 while the eight hang; health, metrics and sign-in are answered."""
    cookie = rig.cookie(ALICE)
    with contextlib.ExitStack() as stack:
        with all_reports_taken(rig):
            sent = stack.enter_context(flood(rig, cookie, [target] * CONNECTIONS))
            assert rig.send("GET", "/v1/health").status == 200
            assert rig.send("GET", "/metrics").status == 200
            assert rig.page(BOB, "/now").status == 200
            wait_until(lambda: refused(sent) == CONNECTIONS - MOST, 60, "the others to be refused")
        assert Counter(map(status, sent)) == {200: MOST, 429: CONNECTIONS - MOST}


def until_retry(one: socket.socket) -> bytes:
    """Return a stream's beginning."""
    found = b""
    while b"retry: " not in found and (part := one.recv(4096)):
        found += part
    return found


def refused(sent: list[socket.socket]) -> int:
    """Return how many have an answer, which stays to be read."""
    found = 0
    for one in sent:
        one.settimeout(0)
        with contextlib.suppress(BlockingIOError):
            found += one.recv(12, socket.MSG_PEEK) == b"HTTP/1.1 429"
        one.settimeout(patient(60))
    return found


@pytest.mark.parametrize("form", ["", ".json"], ids=["pages", "documents"])
def test_a_user_has_two_of_the_six_places_of_reports(rig: Rig, monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    """Eight reports of alice that hang, each of another window, are two at work; bob and the operator get theirs."""
    at_work, most, lock, go_on = 0, 0, threading.Lock(), threading.Event()
    report = DocumentQueries.report

    def hanging(self: DocumentQueries, scope: Scope, *rest: Any) -> Any:
        nonlocal at_work, most
        if scope.user == "alice":
            with lock:
                at_work += 1
                most = max(most, at_work)
            assert go_on.wait(patient(120))
            with lock:
                at_work -= 1
        return report(self, scope, *rest)

    monkeypatch.setattr(DocumentQueries, "report", hanging)
    windows = [f"/me{form}?start={HOUR - n}&end={HOUR + 86400}" for n in range(1, MOST + 1)]
    with flood(rig, rig.cookie(ALICE), windows) as sent:
        try:
            wait_until(lambda: at_work == REPORTS_OF_USER, 60, "alice's reports to begin")
            assert {rig.page(uid, f"/me{other}").status for uid in (BOB, OPER) for other in ("", ".json")} == {200}
            assert rig.get(BOB, "/v1/report").status == 200
        finally:
            go_on.set()
        assert Counter(map(status, sent)) == {200: MOST}
    assert most == REPORTS_OF_USER


def test_nothing_needs_the_pool_of_the_framework(rig: Rig) -> None:
    """With no thread in it every route is answered: a new one that uses it would hang here."""

    @rig.hub.app.get("/empty-the-pool")
    async def empty() -> Response:
        current_default_thread_limiter().total_tokens = 0
        return Response()

    assert rig.send("GET", "/empty-the-pool").status == 200
    routes = [route for route in rig.hub.app.routes if isinstance(route, APIRoute)]
    assert [route.path for route in routes if not iscoroutinefunction(route.endpoint)] == []
    got = [re.sub(r"\{\w+\}", "7", route.path) for route in routes if "GET" in (route.methods or ())]
    assert len(got) > 40
    cookie = rig.cookie(OPER)
    streams = [path for path in got if path.endswith(("/changes", "/stream"))]
    with flood(rig, cookie, [path for path in streams if path.endswith("/changes")]) as sent:
        assert [until_retry(one).startswith(b"HTTP/1.1 200") for one in sent] == [True] * len(sent)
    for path in sorted(set(got) - set(streams)):
        api = rig.get(OPER, path) if path.startswith("/v1/") else rig.send("GET", path, headers={"Cookie": cookie})
        assert api.status < 600, path
    assert rig.send("POST", "/sign-out", b"", {"Cookie": cookie, "Sec-Fetch-Site": "same-origin"}).status == 200


def test_many_who_ask_for_health_wait_for_one_answer(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a hundred strangers who ask at once each gets an answer that was made after they asked, of two or three."""
    made, go_on, read = 0, threading.Event(), rig.metrics.text

    def text() -> bytes:
        nonlocal made
        made += 1
        assert go_on.wait(patient(60))
        return read()

    monkeypatch.setattr(rig.metrics, "text", text)
    with flood(rig, "x=1", ["/metrics"] * 100) as sent:
        wait_until(lambda: made == 1, 30, "the first to be at work")
        assert rig.send("GET", "/v1/health").status == 200, "the loop has read them all by then"
        go_on.set()
        assert Counter(map(status, sent)) == {200: 100}
    assert made <= 3
