"""The proxy that breaks exchanges off: what each place lets through."""

import http.client
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from gpuwaste.testing.cluster_process import ClusterError
from gpuwaste.testing.fault_proxy import Fault, FaultProxy, Place
from gpuwaste.testing.patience import patient

pytestmark = pytest.mark.sockets

BATCH = json.dumps({"protocol": 1, "node": "gpu1"}).encode() + b"\n" + b"x" * 200
ANSWER = b'{"accepted":1}'


class AnsweringServer(ThreadingHTTPServer):
    """Notes the bodies that it was sent and answers each."""

    daemon_threads = True

    def __init__(self) -> None:
        self.taken: list[bytes] = []
        self.complete = threading.Event()
        super().__init__(("127.0.0.1", 0), _Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: connections break off here on purpose."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: AnsweringServer

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.taken.append(body)
        if len(body) == int(self.headers["Content-Length"]):
            self.server.complete.set()
        self.send_response(200)
        self.send_header("Content-Length", str(len(ANSWER)))
        self.end_headers()
        self.wfile.write(ANSWER)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 the base class names it so
        """Keep quiet."""


@pytest.fixture
def hub() -> Iterator[AnsweringServer]:
    server = AnsweringServer()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def proxy(hub: AnsweringServer) -> Iterator[FaultProxy]:
    with FaultProxy(("127.0.0.1", hub.server_address[1])) as running:
        yield running


def _post(proxy: FaultProxy, body: bytes = BATCH, target: str = "/v1/hours") -> bytes:
    connection = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=patient(10))
    try:
        connection.request("POST", target, body)
        return connection.getresponse().read()
    finally:
        connection.close()


def _break(proxy: FaultProxy, fault: Fault) -> None:
    proxy.arm(fault)
    with pytest.raises((http.client.HTTPException, OSError)):
        _post(proxy)
    fault.wait(5)


def test_without_a_fault_it_forwards_on_one_connection(proxy: FaultProxy, hub: AnsweringServer) -> None:
    """Two requests of one connection reach the target whole, and their answers come back."""
    connection = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=patient(10))
    for number in range(2):
        connection.request("POST", "/v1/hours", b"%d" % number)
        assert connection.getresponse().read() == ANSWER
    connection.close()
    assert hub.taken == [b"0", b"1"]
    assert proxy.forwarded == 2


@pytest.mark.parametrize("place", [Place.CONNECT, Place.REQUEST_PART])
def test_a_request_broken_off_never_is_whole(proxy: FaultProxy, hub: AnsweringServer, place: Place) -> None:
    """What is cut inside the request reaches the target in part at most, and the next one goes through."""
    _break(proxy, Fault(place, body_bytes=100))
    assert all(len(body) <= 100 for body in hub.taken)
    assert _post(proxy) == ANSWER
    assert hub.taken[-1] == BATCH


@pytest.mark.parametrize("place", [Place.REQUEST, Place.ANSWER, Place.ANSWER_PART])
def test_an_answer_broken_off_leaves_the_request_done(proxy: FaultProxy, hub: AnsweringServer, place: Place) -> None:
    """The target has the whole request, the client never has the whole answer."""
    _break(proxy, Fault(place, body_bytes=3))
    assert hub.complete.wait(5)
    assert hub.taken == [BATCH]


def test_the_action_happens_at_the_place_before_the_client_knows(proxy: FaultProxy, hub: AnsweringServer) -> None:
    """An action at ANSWER runs when the target has answered; the fault tells which node's batch it struck."""
    seen: list[int] = []
    fault = Fault(Place.ANSWER, action=lambda: seen.append(len(hub.taken)))
    _break(proxy, fault)
    assert seen == [1]
    assert fault.wait(1).node == "gpu1"


def test_a_fault_waits_for_what_it_matches(proxy: FaultProxy) -> None:
    """A batch of another node and a read pass; waiting for what never comes says so."""
    fault = proxy.arm(Fault(Place.REQUEST, matches=lambda request: request.node == "gpu2"))
    assert _post(proxy) == ANSWER
    assert _post(proxy, b"no json", "/v1/top") == ANSWER
    with pytest.raises(ClusterError, match="no exchange to break off"):
        fault.wait(0.05)
    proxy.disarm(fault)
    assert _post(proxy, BATCH.replace(b"gpu1", b"gpu2")) == ANSWER


def test_a_repeating_fault_strikes_until_disarmed(proxy: FaultProxy) -> None:
    """As a hub that is away for long would."""
    fault = proxy.arm(Fault(Place.CONNECT, repeat=True))
    for _ in range(2):
        with pytest.raises((http.client.HTTPException, OSError)):
            _post(proxy)
    proxy.disarm(fault)
    assert _post(proxy) == ANSWER
