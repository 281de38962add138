"""The client against a peer that misbehaves: each fault is one error of the right kind, within its time and size."""

import json
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from socketserver import UnixStreamServer
from ssl import PROTOCOL_TLS_SERVER, SSLContext

import pytest
from tests.self_signed import self_signed

from gpuwaste.core.errors import AuthError, ConfigError, NoDataError, RetryableWireError, WireError
from gpuwaste.ledger.hour import AllocationHour, HourBatch, encode_hour
from gpuwaste.net.batch import Ack, Batch, Envelope
from gpuwaste.net.hub_client import BusyError, HubClient, RefusedError
from gpuwaste.net.tokens import TokenIssuer
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.testing.fake_hub import FakeHub, Reply

pytestmark = pytest.mark.sockets

ENVELOPE = Envelope("gw", "gpu1", "boot", "0.1.0")
HOUR = 1_700_002_800


def batch(*jobs: int) -> HourBatch:
    return Batch(
        tuple(
            encode_hour(AllocationHour(RunKey("gw", job, HOUR), "gpu1", "GPU-1", HOUR, 1, HOUR * 1000, HOUR * 1000))
            for job in jobs
        )
    )


@contextmanager
def raw_server(talk: Callable[[socket.socket], None]) -> Iterator[str]:
    """Run `talk` with the first connection, after its request's head was read."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with suppress(OSError):
            connection, _ = listener.accept()
            with connection:
                connection.settimeout(30)
                head = b""
                while b"\r\n\r\n" not in head:
                    head += connection.recv(65536)
                talk(connection)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.close()
        thread.join(10)
        assert not thread.is_alive()


def sends(*parts: bytes) -> Callable[[socket.socket], None]:
    def talk(connection: socket.socket) -> None:
        for part in parts:
            connection.sendall(part)

    return talk


def drips(start: bytes) -> Callable[[socket.socket], None]:
    def talk(connection: socket.socket) -> None:
        connection.sendall(start)
        while True:
            connection.sendall(b"a")
            time.sleep(0.02)

    return talk


def floods(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n")
    block = b"x" * 1024**2
    for _ in range(1024):
        connection.sendall(block)


def test_a_document_is_read(hub: FakeHub, issuer: TokenIssuer) -> None:
    """GET gives the JSON object, with path and parameters percent-encoded and signed as sent."""
    hub.documents["/v1/jobs/4%2B1"] = {"id": "4+1"}
    client = HubClient(hub.url, issuer)
    assert client.get("/v1/jobs/4+1", {"user": "a&b ü", "limit": 3}) == {"id": "4+1"}


def test_hours_are_acknowledged(hub: FakeHub, issuer: TokenIssuer) -> None:
    """POST gives the signed acknowledgement; a row that the hub rejects is named by line."""
    hub.reject = lambda row: "bad" if row.run_key.job_id == 2 else None
    sent = batch(1, 2, 3)
    assert HubClient(hub.url, issuer).post_hours(ENVELOPE, sent) == Ack(sent.batch_id, 2, {3: "bad"})
    assert sorted(key[1] for key in hub.rows) == [1, 3]
    assert hub.received[0].envelope == ENVELOPE


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        ((400, {"error": "no\x1b[31m such\nnode"}), RefusedError, r"no \[31m such node \(HTTP 400\)"),
        ((413, {"error": "too big"}), RefusedError, "too big"),
        ((426, {"error": "old", "protocol": [2, 3]}), RefusedError, "old"),
        ((401, {"error": "expired", "retry": True}), RetryableWireError, "expired"),
        ((401, {"error": "who?", "retry": False}), AuthError, "who"),
        ((401, None), AuthError, "401"),
        ((403, {"error": "not yours"}), AuthError, "not yours"),
        ((404, {"error": "job 7: not found"}), NoDataError, "^job 7: not found$"),
        ((429, {"error": "slowly"}), RetryableWireError, "slowly"),
        ((500, None), RetryableWireError, "500"),
        ((501, {"error": "not installed"}), RefusedError, "not installed"),
        ((503, {"error": "starting"}), RetryableWireError, "starting"),
        ((400, None), WireError, "is this the hub"),
        ((400, ["list"]), WireError, "is this the hub"),
        ((302, None), WireError, "redirects to 'http://evil/'"),
        ((200, None), WireError, "is this the hub"),
        ((200, ["list"]), WireError, "is this the hub"),
    ],
)
def test_each_status_is_one_kind_of_error(
    hub: FakeHub, issuer: TokenIssuer, answer: tuple[int, object], kind: type[Exception], words: str
) -> None:
    """The hub's words reach the caller as one printable line; a foreign service is not taken for a refusal."""
    status, body = answer
    text = b"<html>" if body is None else json.dumps(body).encode()
    hub.change = lambda _: Reply(status, text, {"Location": "http://evil/"})
    with pytest.raises(kind, match=words) as caught:
        HubClient(hub.url, issuer).get("/v1/top")
    assert isinstance(caught.value, RetryableWireError) == (kind is RetryableWireError)
    assert isinstance(caught.value, RefusedError) == (kind is RefusedError)
    if isinstance(caught.value, RefusedError):
        assert (caught.value.status, caught.value.protocol) == (status, (2, 3) if status == 426 else None)


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(
    ("after", "seconds"),
    [
        ("7", 7.0),
        ("0", 0.0),
        ("", None),
        ("-7", None),
        ("7.5", None),
        ("9" * 400, None),
        ("Wed, 21 Oct 2015 07:28:00 GMT", None),
    ],
)
def test_a_busy_hub_says_when_to_come_back(
    hub: FakeHub, issuer: TokenIssuer, status: int, after: str, seconds: float | None
) -> None:
    """Retry-After in seconds reaches the caller; what is no plain number is as if it were not there."""
    hub.change = lambda _: Reply(status, b'{"error":"busy"}', {"Retry-After": after})
    with pytest.raises(RetryableWireError, match="busy") as caught:
        HubClient(hub.url, issuer).get("/v1/top")
    assert (caught.value.retry_after_s if isinstance(caught.value, BusyError) else None) == seconds


def forged(reply: Reply) -> Reply:
    return replace(reply, headers={"Gpuwaste-Ack": "0" * 64})


def unsigned(reply: Reply) -> Reply:
    return replace(reply, headers={})


def altered(reply: Reply) -> Reply:
    return replace(reply, body=reply.body.replace(b'"accepted":1', b'"accepted": 1'))


@pytest.mark.parametrize("change", [forged, unsigned, altered])
def test_a_forged_acknowledgement_is_none(hub: FakeHub, issuer: TokenIssuer, change: Callable[[Reply], Reply]) -> None:
    """Without the hub's signature over the very bytes the batch is not acknowledged."""
    hub.change = change
    with pytest.raises(AuthError):
        HubClient(hub.url, issuer).post_hours(ENVELOPE, batch(1))


def test_another_batchs_acknowledgement_is_none(hub: FakeHub, issuer: TokenIssuer) -> None:
    """A good signature over another batch's acknowledgement acknowledges nothing."""
    kept: list[Reply] = []
    hub.change = lambda reply: kept.append(reply) or kept[0]  # type: ignore[func-returns-value]  # append, then the first
    client = HubClient(hub.url, issuer)
    client.post_hours(ENVELOPE, batch(1))
    with pytest.raises(WireError, match="acknowledges batch"):
        client.post_hours(ENVELOPE, batch(1))


@pytest.mark.parametrize(
    ("talk", "kind", "words"),
    [
        (sends(b"\x16\x03garbage\r\n\r\n"), WireError, "HTTP"),
        (sends(b""), RetryableWireError, None),
        (sends(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"), RetryableWireError, None),
        (sends(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n{}"), RetryableWireError, None),
        (sends(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}"), WireError, None),
        (sends(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200), WireError, None),
        (sends(b"HTTP/1.1 200 OK\r\nX: " + b"y" * 70000), WireError, None),
        (sends(b"HTTP/1.1 999999 OK\r\n\r\n"), WireError, None),
        (sends(b"HTTP/1.1 200 OK\r\nContent-Length: zz\r\n\r\n{}x"), WireError, None),
        (floods, WireError, "larger"),
    ],
)
def test_a_broken_answer_is_one_error(
    talk: Callable[[socket.socket], None], kind: type[Exception], words: str | None
) -> None:
    """Garbage, half answers, endless headers and a gigabyte end as a WireError; what broke off may be tried again."""
    with raw_server(talk) as url, pytest.raises(kind, match=words) as caught:
        HubClient(url).get("/v1/top")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "start",
    [b"", b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n"],
)
def test_a_dripping_answer_ends_at_the_deadline(start: bytes) -> None:
    """A peer that sends a byte now and then cannot hold the caller beyond the whole exchange's time."""
    with raw_server(drips(start)) as url, pytest.raises(RetryableWireError, match=r"within 0\.3 s"):
        HubClient(url, timeout_s=0.3).get("/v1/top")


def test_a_silent_peer_ends_at_the_deadline() -> None:
    """A peer that accepts and says nothing is given up."""
    done = threading.Event()

    def waits(_: socket.socket) -> None:
        done.wait(30)

    with raw_server(waits) as url:
        with pytest.raises(RetryableWireError):
            HubClient(url, timeout_s=0.2).get("/v1/top")
        done.set()


def test_nobody_there_is_retryable(tmp_path: Path) -> None:
    """A refused connection, an unknown name and a missing socket say where and that the hub may be down."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    for url in (f"http://127.0.0.1:{port}", "http://no-such-host.invalid:1", f"unix:{tmp_path}/none"):
        with pytest.raises(RetryableWireError, match="is the hub running") as caught:
            HubClient(url, timeout_s=5).get("/v1/top")
        assert url in str(caught.value)
        assert "object at 0x" not in str(caught.value)


def test_an_early_refusal_is_heard(issuer: TokenIssuer) -> None:
    """A hub that answers 413 before it has read the body is understood."""
    answer = b'{"error":"too big"}'
    reply = b"HTTP/1.1 413 X\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (len(answer), answer)
    with raw_server(sends(reply)) as url, pytest.raises(WireError) as caught:
        HubClient(url, issuer).post_hours(ENVELOPE, batch(*range(1, 20)))
    assert isinstance(caught.value, RefusedError | RetryableWireError)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "ftp://x",
        "http://",
        "http://h:99999",
        "http://h/path",
        "http://u:p@h",
        "unix:relative",
        "http://h?x=1",
        "h:1",
    ],
)
def test_a_bad_url_is_refused(url: str) -> None:
    """The error names the setting."""
    with pytest.raises(ConfigError, match="hub_url"):
        HubClient(url)


def test_a_token_never_travels_in_the_clear(issuer: TokenIssuer) -> None:
    """A token over plain HTTP is refused unless it stays on this host."""
    with pytest.raises(ConfigError, match="https"):
        HubClient("http://hub.example:9461", issuer)
    HubClient("http://localhost:9461", issuer)
    HubClient("http://[::1]:9461", issuer)


class _Documents(BaseHTTPRequestHandler):
    """Answers every GET with its path."""

    def do_GET(self) -> None:
        body = json.dumps({"path": self.path}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def address_string(self) -> str:
        return "local"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 the base class names it
        pass


@contextmanager
def serving(server: HTTPServer | UnixStreamServer) -> Iterator[None]:
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


def test_a_unix_socket_serves(tmp_path: Path) -> None:
    """unix:/PATH reaches a hub on this host."""
    path = tmp_path / "hub.sock"
    with serving(UnixStreamServer(str(path), _Documents)):
        assert HubClient(f"unix:{path}").get("/v1/top", {"n": 1}) == {"path": "/v1/top?n=1"}


def test_an_answer_without_predictions_is_one_error(tmp_path: Path) -> None:
    """What is no list of documents is not taken for predictions."""
    path = tmp_path / "hub.sock"
    with (
        serving(UnixStreamServer(str(path), _Documents)),
        pytest.raises(WireError, match="lacks a prediction for some requests"),
    ):
        HubClient(f"unix:{path}").predict_job("7")


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl, which makes the test's certificate, is missing")
def test_only_a_trusted_certificate_is_spoken_to(tmp_path: Path) -> None:
    """With hub_ca the hub's certificate is trusted; without it nothing is sent."""
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    self_signed(cert, key, "DNS:localhost")
    context = SSLContext(PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    server = HTTPServer(("127.0.0.1", 0), _Documents)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    url = f"https://localhost:{server.server_address[1]}"
    with serving(server):
        assert HubClient(url, ca=str(cert)).get("/v1/top") == {"path": "/v1/top"}
        with pytest.raises(AuthError, match="hub_ca"):
            HubClient(url).get("/v1/top")
    with pytest.raises(ConfigError, match="hub_ca"):
        HubClient(url, ca=str(key))


def test_the_client_imports_no_store() -> None:
    """A command that asks the hub loads neither SQLite nor DuckDB: both cost start-up time."""
    code = "import sys, gpuwaste.net.hub_client; print([m for m in ('sqlite3', 'duckdb') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
