"""Outlet webhook against a real HTTP server, which checks signatures with the library of Standard Webhooks."""

import base64
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.unit.act.events.stream import node_silent, open_stream

from gpuwaste.act.events.outlet import Outlet, OutletDownError, load_outlet
from gpuwaste.jobs.events.envelope import StoredEvent, event_of
from gpuwaste.testing.webhook_receiver import WebhookReceiver, webhook_receiver

SECRET = "whsec_" + base64.b64encode(b"0123456789abcdef0123456789abcdef").decode()


@pytest.fixture
def receiver() -> Iterator[WebhookReceiver]:
    with webhook_receiver(secret=SECRET) as found:
        yield found


def outlet(folder: Path, url: str, more: str = 'networks = ["127.0.0.0/8"]', secret: str = SECRET) -> Outlet:
    key, file = folder / "key", folder / "hook.toml"
    key.write_text(secret)
    key.chmod(0o600)
    file.write_text(f'[webhook]\nurl = "{url}"\nsecret_file = "{key}"\ntimeout_s = 20\n{more}\n')
    return load_outlet(file).make()


def events_of(jobs: int) -> list[StoredEvent]:
    _, stream, _ = open_stream(jobs)
    return [event_of(stored) for stored in stream.page(0, 10_000).events]


def test_events_come_in_signed_batches(tmp_path: Path, receiver: WebhookReceiver) -> None:
    """In order, to the URL's path and query, as many as the file says; the library accepts each signature."""
    sent = events_of(130)
    given = outlet(tmp_path, receiver.url).deliver(sent, "gw")
    assert given.dead == []
    assert [event["id"] for event in receiver.events] == [event.id for event in sent]
    assert [request["events"] for request in receiver.requests] == [100, 100, 60]
    assert {request["path"] for request in receiver.requests} == {"/hooks/gpu?site=a"}
    assert {request["content-type"] for request in receiver.requests} == {"application/cloudevents-batch+json"}


def test_a_request_for_each_event_has_the_id_of_the_event(tmp_path: Path, receiver: WebhookReceiver) -> None:
    """So a receiver that keeps webhook-id drops what it has seen."""
    sent = events_of(2)
    more = 'networks = ["127.0.0.0/8"]\nbatch = 1'
    outlet(tmp_path, receiver.url, more).deliver(sent, "gw")
    assert [request["webhook-id"] for request in receiver.requests] == [event.id for event in sent]
    assert {request["content-type"] for request in receiver.requests} == {"application/cloudevents+json"}


def test_a_wrong_secret_is_noticed_by_the_receiver(tmp_path: Path, receiver: WebhookReceiver) -> None:
    """The receiver breaks off; nothing counts as handed over."""
    other = "whsec_" + base64.b64encode(b"x" * 32).decode()
    with pytest.raises(OutletDownError):
        outlet(tmp_path, receiver.url, secret=other).deliver(events_of(1), "gw")
    assert receiver.events == []


def test_an_address_inside_the_site_has_to_be_listed(tmp_path: Path, receiver: WebhookReceiver) -> None:
    """Loopback, a private network, the address of cloud metadata: refused with what to add, and not even connected."""
    for url in (receiver.url, f"http://localhost:{receiver.port}/", "http://169.254.169.254/latest", "http://[::1]/"):
        with pytest.raises(OutletDownError, match=r"inside the site: add it to \[webhook\] networks"):
            outlet(tmp_path, url, 'networks = ["10.0.0.0/8"]').deliver(events_of(1), "gw")
    assert receiver.requests == []


def test_a_name_that_leads_elsewhere_at_the_second_look_up_is_sent_nothing(
    tmp_path: Path, receiver: WebhookReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name server gives a public address to the check and this host's to the connection: no request is sent."""
    asked: list[str] = []

    def rebound(host: str, port: int, *_: object, **__: object) -> list[tuple[Any, ...]]:
        asked.append(host)
        address = "8.8.8.8" if len(asked) == 1 else "127.0.0.1"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

    monkeypatch.setattr(socket, "getaddrinfo", rebound)
    with pytest.raises(OutletDownError, match=r"127\.0\.0\.1 is an address inside the site"):
        outlet(tmp_path, f"http://hooks.example:{receiver.port}/", "").deliver(events_of(1), "gw")
    assert (asked, receiver.requests) == (["hooks.example"] * 2, [])


def test_a_redirect_is_not_followed(tmp_path: Path, receiver: WebhookReceiver) -> None:
    """Whoever answers for the receiver could lead events, and the hub's address, anywhere."""
    receiver.status, receiver.location = lambda _: 307, f"http://127.0.0.1:{receiver.port}/elsewhere"
    with pytest.raises(OutletDownError, match="HTTP 307"):
        outlet(tmp_path, receiver.url).deliver(events_of(1), "gw")
    assert len(receiver.requests) == 1


@pytest.mark.parametrize("status", [401, 403, 404, 408, 409, 429, 500, 502, 503])
def test_what_may_pass_is_tried_again(tmp_path: Path, receiver: WebhookReceiver, status: int) -> None:
    """A wrong key, a route that is missing, a full or broken receiver: all comes again."""
    receiver.status = lambda _: status
    with pytest.raises(OutletDownError, match=f"HTTP {status}"):
        outlet(tmp_path, receiver.url).deliver(events_of(1), "gw")


def test_one_event_that_a_receiver_never_takes_costs_no_other(tmp_path: Path, receiver: WebhookReceiver) -> None:
    """A batch that is refused for good is sent one by one; what is refused then is given back with the answer."""

    def status(events: list[dict[str, Any]]) -> int:
        return 422 if any(event["subject"] == "node/bad" for event in events) else 200

    receiver.status = status
    sent = [*events_of(3), event_of(node_silent("bad")), event_of(node_silent("good"))]
    given = outlet(tmp_path, receiver.url).deliver(sent, "gw")
    assert [(event.subject, why) for event, why in given.dead] == [("node/bad", "HTTP 422")]
    assert [event["subject"] for event in receiver.events] == [e.subject for e in sent if e.subject != "node/bad"]


def test_large_events_share_no_request_beyond_a_megabyte(tmp_path: Path, receiver: WebhookReceiver) -> None:
    """Ten of 250 KB take several requests; none is lost."""
    sent = [event_of(node_silent(f"{number}{'n' * 250_000}")) for number in range(10)]
    outlet(tmp_path, receiver.url).deliver(sent, "gw")
    assert len(receiver.events) == 10
    assert max(request["bytes"] for request in receiver.requests) <= 1 << 20


def test_a_receiver_that_is_not_there_or_has_no_name_is_one_line(tmp_path: Path) -> None:
    """The URL and the cause."""
    for url in ("http://127.0.0.1:1/x", "http://no-such-host.invalid/x"):
        with pytest.raises(OutletDownError, match=r"http://\S+: ") as raised:
            outlet(tmp_path, url).deliver(events_of(1), "gw")
        assert "\n" not in str(raised.value)
