"""A client that knows several hosts of a hub: whom it asks, what it sends twice, what it says where nobody answers."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest
from tests.integration.net.test_hub_client import ENVELOPE, batch

from gpuwaste.core.errors import ConfigError, RetryableWireError
from gpuwaste.net.addresses import parse_endpoints
from gpuwaste.net.hub_client import ROLE_HEADER, STANDS_BY, BusyError, HubClient, StandsByError
from gpuwaste.net.tokens import TokenIssuer
from gpuwaste.testing.daemon_config import free_port
from gpuwaste.testing.fake_hub import FakeHub, Reply

pytestmark = pytest.mark.sockets


@contextmanager
def silent() -> Iterator[tuple[str, list[bytes]]]:
    """Lend a server that reads each request and breaks off, with what it read."""
    listener, heard = socket.create_server(("127.0.0.1", 0)), list[bytes]()

    def serve() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with connection:
                    connection.settimeout(30)
                    heard.append(connection.recv(65536))

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}", heard
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join(10)


def test_where_one_is_not_reached_the_next_is_asked_at_once(hub: FakeHub, issuer: TokenIssuer) -> None:
    """One attempt of the caller is enough, and what was learnt holds for the next one, in either order."""
    nobody = f"http://127.0.0.1:{free_port()}"
    for urls in (f"{nobody} {hub.url}", f" {hub.url}  {nobody}\t"):
        client = HubClient(urls, issuer)
        assert client.post_hours(ENVELOPE, batch(1)).accepted == 1
        assert client.post_hours(ENVELOPE, batch(2)).accepted == 1


def test_what_may_have_arrived_is_not_sent_to_another_one(hub: FakeHub, issuer: TokenIssuer) -> None:
    """A hub that breaks off may have the rows: the caller hears of it, and its next attempt goes to the next host."""
    with silent() as (url, heard):
        client = HubClient(f"{url} {hub.url}", issuer)
        with pytest.raises(RetryableWireError):
            client.post_hours(ENVELOPE, batch(1))
        assert (len(heard), hub.rows) == (1, {})
        assert client.post_hours(ENVELOPE, batch(1)).accepted == 1
        assert len(heard) == 1


@pytest.fixture
def standby(hub: FakeHub) -> Iterator[FakeHub]:
    """Lend a hub that stands by beside the other one: it marks its refusals."""
    headers = {ROLE_HEADER: STANDS_BY, "Retry-After": "5"}
    with FakeHub(hub.checkers) as other:
        other.change = lambda _: Reply(503, b'{"error":"this hub is a standby"}', headers)
        yield other


def test_where_one_stands_by_the_next_is_asked_at_once(hub: FakeHub, standby: FakeHub, issuer: TokenIssuer) -> None:
    """One attempt of the caller is enough for a batch and a question, and what was learnt holds for the next one."""
    hub.documents["/v1/report"] = {"document": "report"}
    client = HubClient(f"{standby.url} {hub.url}", issuer)
    assert client.post_hours(ENVELOPE, batch(1)).accepted == 1
    assert client.get("/v1/report") == {"document": "report"}
    assert (len(hub.rows), len(standby.callers)) == (1, 1)


def test_where_all_stand_by_the_caller_is_told_when_to_come_back(standby: FakeHub, issuer: TokenIssuer) -> None:
    """Alone, and beside one that is not reached: one line with the words of each."""
    nobody = f"http://127.0.0.1:{free_port()}"
    for urls in (standby.url, f"{standby.url} {nobody}"):
        with pytest.raises(BusyError, match="this hub is a standby") as caught:
            HubClient(urls, issuer).post_hours(ENVELOPE, batch(1))
        assert caught.value.retry_after_s == 5
    standby.change = lambda _: Reply(503, b'{"role":"stands by"}', {ROLE_HEADER: STANDS_BY})
    with pytest.raises(StandsByError, match=f"^{standby.url}: this hub is a standby"):
        HubClient(standby.url, issuer).get("/v1/health")


def test_a_batch_that_is_put_off_goes_to_the_next_one_at_the_next_attempt(
    hub: FakeHub, standby: FakeHub, issuer: TokenIssuer
) -> None:
    """A 503 without the mark, of a hub that is busy or cut off from its store: it may have the rows all the same."""
    standby.change = lambda _: Reply(503, b'{"error":"too many batches"}', {"Retry-After": "5"})
    client = HubClient(f"{standby.url} {hub.url}", issuer)
    with pytest.raises(BusyError, match=f"^{standby.url}: too many") as caught:
        client.post_hours(ENVELOPE, batch(1))
    assert (caught.value.retry_after_s, hub.rows) == (5, {})
    assert client.post_hours(ENVELOPE, batch(1)).accepted == 1


def test_a_question_that_one_cannot_answer_now_is_asked_of_the_next(
    hub: FakeHub, standby: FakeHub, issuer: TokenIssuer
) -> None:
    """A hub that is cut off from its store, then one that answers; without one the first one's own words are told."""
    hub.documents["/v1/report"] = {"document": "report"}
    standby.change = lambda _: Reply(503, b'{"error":"the hub cannot answer now"}', {})
    assert HubClient(f"{standby.url} {hub.url}", issuer).get("/v1/report") == {"document": "report"}
    for urls in (standby.url, f"http://127.0.0.1:{free_port()} {standby.url}"):
        with pytest.raises(RetryableWireError, match=f"^{standby.url}: the hub cannot answer now"):
            HubClient(urls, issuer).get("/v1/report")


def test_where_nobody_is_reached_all_are_named(issuer: TokenIssuer) -> None:
    """The one line names each host and what became of it."""
    ports = free_port(), free_port()
    urls = [f"http://127.0.0.1:{port}" for port in ports]
    with pytest.raises(RetryableWireError) as caught:
        HubClient(" ".join(urls), issuer).get("/v1/health")
    assert all(f"{url}: Connection refused" in str(caught.value) for url in urls)
    assert "\n" not in str(caught.value)


def test_the_path_of_a_socket_may_have_spaces() -> None:
    """A Unix socket alone, and beside hosts: only a space before another URL ends one."""
    (alone,) = parse_endpoints("unix:/run/a  b/hub.sock")
    assert alone.host == "/run/a  b/hub.sock"
    found = parse_endpoints("http://a:1 unix:/run/a b/s  https://b")
    assert [one.host for one in found] == ["a", "/run/a b/s", "b"]


def test_each_url_is_checked(issuer: TokenIssuer) -> None:
    """A wrong one among good ones, none at all, and a token that would go in the clear to one of them."""
    for urls in ("http://127.0.0.1:1 ftp://x", "", "   ", "http://127.0.0.1:1,http://127.0.0.1:2"):
        with pytest.raises(ConfigError, match="hub_url"):
            HubClient(urls)
    with pytest.raises(ConfigError, match="in clear text"):
        HubClient("http://127.0.0.1:1 http://hub.example.org:1", issuer)
