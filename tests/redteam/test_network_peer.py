"""A peer of the network without any credential: what it sends grows nothing, and what it holds keeps nobody out."""

import contextlib
import re
import socket
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.integration.hub.rig import running_hub
from tests.self_signed import self_signed

from gpuwaste.agent.control_socket import ask_agent
from gpuwaste.core.config import Config
from gpuwaste.core.site_config import CommonConfig
from gpuwaste.hub.protocol import Bounds
from gpuwaste.net.batch import Batch, Envelope, encode_batch
from gpuwaste.testing.cluster_process import wait_until
from gpuwaste.testing.lone_hub import LoneHub
from gpuwaste.testing.patience import patient
from gpuwaste.testing.process_memory import rss_b

METHODS = 200
METHOD_B = 60_000
GROWTH_B = 96 * 1024**2  # of a process; the methods of one series each took 700 MB
PAGE_B = 64 * 1024
CREDENTIAL = "of-node-gpu1-in-these-tests"
BEGINNINGS = (
    b"",
    b"GET /v1/health HTTP/1.1\r\nHost: ",
    b"POST /v1/hours HTTP/1.1\r\nHost: hub\r\nContent-Length: 900\r\n\r\nx",
)


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LoneHub]:
    """Run a hub of its own process; no peer here has a credential that it takes."""
    directory = tmp_path_factory.mktemp("hub")
    tokens = directory / "tokens"
    tokens.write_text(f"gpu1 {CREDENTIAL}\n", encoding="ascii")
    tokens.chmod(0o600)
    lone = LoneHub(directory, hub={"node_tokens_file": str(tokens)}, common={"token_file": str(tokens)})
    lone.start()
    yield lone
    lone.stop()


def said(port: int, request: bytes, source: str = "127.0.0.1") -> bytes:
    """Send a request and return all that comes back, nothing where the connection is reset."""
    answer = b""
    # a connection that is cut at once is reset before connect() has returned: Linux names that EPIPE
    with (
        contextlib.suppress(ConnectionResetError, BrokenPipeError),
        socket.create_connection(("127.0.0.1", port), 30, source_address=(source, 0)) as sock,
    ):
        sock.sendall(request)
        while part := sock.recv(65536):
            answer += part
    return answer


def request(method: bytes = b"GET", target: bytes = b"/v1/health") -> bytes:
    return method + b" " + target + b" HTTP/1.1\r\nHost: hub\r\nConnection: close\r\n\r\n"


def page(port: int) -> str:
    return said(port, request(target=b"/metrics")).partition(b"\r\n\r\n")[2].decode()


def test_methods_and_paths_of_a_stranger_grow_no_metric(hub: LoneHub) -> None:
    """Hundreds of methods of 60 KB and as many paths: the hub and its /metrics stay small, labels are of fixed sets."""
    assert hub.process is not None
    page(hub.port)
    before = rss_b(hub.process.pid)
    refused: set[bytes] = set()
    for number in range(METHODS):
        method = b"%06d" % number + b"M" * (METHOD_B - 6)
        target = (b"/metrics", b"/v1/health", b"/v1/hours", b"/nowhere")[number % 4]
        refused.add(said(hub.port, request(method, target))[9:12])
        assert b" 404 " in said(hub.port, request(b"PUT", b"/v9/%d" % number))[:20]
        assert b" 405 " in said(hub.port, request(b"PUT", b"/metrics"))[:20]
    text = page(hub.port)
    print(f"/metrics: {len(text)} bytes; the hub grew by {(rss_b(hub.process.pid) - before) >> 20} MiB")  # noqa: T201
    assert len(text) < PAGE_B
    assert set(re.findall(r'method="([^"]*)"', text)) <= {"GET", "POST", "PUT", "other"}
    assert all(route == "other" or "/v9" not in route for route in re.findall(r'route="([^"]*)"', text))
    assert rss_b(hub.process.pid) - before < GROWTH_B
    assert refused == {b"501"}


@contextlib.contextmanager
def flooded(port: int, connections: int, spread: str, beginning: bytes) -> Iterator[None]:
    """Keep so many unfinished connections open, each from an address of its own, as long as the block lasts."""
    script = Path(__file__).with_name("flood.py")
    flood = subprocess.Popen(
        [sys.executable, str(script), str(port), str(connections), spread, beginning.hex()],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert flood.stdout is not None
        assert flood.stdout.readline() == b"open\n"
        yield
    finally:
        cuts, _ = flood.communicate(timeout=patient(60))
        print(f"{connections} connections, {spread} networks: {int(cuts or 0)} cut")  # noqa: T201


def honest(port: int, source: str, count: int, at_once: int, target: bytes = b"/v1/health") -> int:
    """Ask `count` times from one address, some at once; return how many were answered."""
    with ThreadPoolExecutor(at_once) as pool:
        answers = pool.map(lambda _: said(port, request(target=target), source), range(count))
        return sum(b" 200 " in answer[:20] for answer in answers)


@pytest.mark.parametrize("spread", ["few", "many"])
@pytest.mark.parametrize("beginning", BEGINNINGS, ids=["silent", "half a head", "half a body"])
def test_a_flood_from_3400_addresses_resets_no_honest_request(hub: LoneHub, spread: str, beginning: bytes) -> None:
    """Unfinished connections of 3,400 addresses, reopened when cut: honest requests are answered from any network."""
    with flooded(hub.port, 3400, spread, beginning):
        elsewhere = honest(hub.port, "127.0.0.1", 36, 12)
        beside = honest(hub.port, "127.66.0.7", 36, 12)
    print(f"answered: {elsewhere} of 36 from another network, {beside} of 36 from one of the flood's")  # noqa: T201
    assert elsewhere == 36
    assert beside >= 30


def test_two_thousand_agents_of_few_networks_are_answered(hub: LoneHub) -> None:
    """All of them in one moment, 254 to a network: no limit for a peer or a network hits a site that is in order."""
    script = Path(__file__).with_name("agents.py")
    done = subprocess.run(
        [sys.executable, str(script), str(hub.port), "2000"], capture_output=True, check=True, timeout=patient(120)
    )
    assert int(done.stdout) == 2000


def test_half_sent_bodies_keep_no_agent_out(hub: LoneHub) -> None:
    """Strangers hold all the room for bodies: an agent is served as soon as theirs are late, not when they give up."""
    half = b"POST /v1/hours HTTP/1.1\r\nHost: hub\r\nContent-Length: 1048576\r\n\r\n" + b"x" * 1_000_000
    body = encode_batch(Envelope("gw", "gpu1", "boot", "0"), Batch((), "b1"))
    head = f"POST /v1/hours HTTP/1.1\r\nHost: hub\r\nConnection: close\r\nAuthorization: Bearer {CREDENTIAL}\r\n"
    ask = f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
    with contextlib.ExitStack() as stack:
        for _ in range(80):
            sock = stack.enter_context(socket.create_connection(("127.0.0.1", hub.port), 30))
            with contextlib.suppress(ConnectionError):
                sock.sendall(half)
        wait_until(lambda: said(hub.port, ask)[9:12] == b"200", 15, "the agent to be served", poll_s=0.5)


def test_handshakes_that_are_not_made_are_bounded(tmp_path: Path) -> None:
    """A silent connection to a port with TLS is counted and cut as any other, and requests are answered."""
    cert, key = tmp_path / "c.pem", tmp_path / "k.pem"
    self_signed(cert, key)
    context = ssl.create_default_context(cafile=str(cert))
    tls = (str(cert), str(key))
    with running_hub(tmp_path, tls=tls, bounds=Bounds(waiting=40)) as rig, contextlib.ExitStack() as stack:
        held = [stack.enter_context(socket.create_connection(("127.0.0.1", rig.port), 20)) for _ in range(200)]
        url = f"https://127.0.0.1:{rig.port}/v1/health"
        with urllib.request.urlopen(url, context=context, timeout=patient(30)) as answer:
            assert answer.status == 200
        assert len(rig.server.limiter) <= 40
        assert rig.server.limiter.cut >= 160
        held[0].settimeout(20)
        with contextlib.suppress(ConnectionResetError):
            assert held[0].recv(1) == b""
    assert len(rig.server.limiter) == 0


EXPORTER = """
import resource, sys
from pathlib import Path
from prometheus_client.registry import CollectorRegistry
from gpuwaste.agent.control_socket import ControlServer
from gpuwaste.net.metrics_server import MetricsServer
from gpuwaste.net.metrics_server import ProgramCollector

registry = CollectorRegistry()
registry.register(ProgramCollector("0", lambda: 0, None))
exporter = MetricsServer("127.0.0.1:0", registry, section=sys.argv[2])
control = ControlServer(Path(sys.argv[1]), {"status": lambda _: {"node": "gpu1"}})
exporter.start()
control.start()
size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + 96 * 1024**2, resource.RLIM_INFINITY))
print(exporter.port, flush=True)
sys.stdin.read()
control.stop()
exporter.stop()
"""


@pytest.fixture(params=["agent", "advisor"])
def exporter(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[tuple[int, Path]]:
    """Run /metrics of agent or advisor with a control socket, in a process with room for few more threads."""
    process = subprocess.Popen(
        [sys.executable, "-c", EXPORTER, str(tmp_path), request.param], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline()), tmp_path
    finally:
        process.communicate(timeout=patient(30))


def status(run_dir: Path) -> str:
    """Ask an agent's control socket."""
    return ask_agent(Config(common=CommonConfig(run_dir=str(run_dir))), {"command": "status"}, 20)


@pytest.mark.parametrize("spread", ["few", "many"])
@pytest.mark.parametrize("beginning", BEGINNINGS[:2], ids=["silent", "half a head"])
def test_silent_connections_at_metrics_end_no_thread(exporter: tuple[int, Path], spread: str, beginning: bytes) -> None:
    """While a flood wants more threads than there can be, scrapes and commands are answered, and also after it."""
    port, run_dir = exporter
    with flooded(port, 300, spread, beginning):
        answered = honest(port, "127.0.0.1", 36, 4, b"/metrics")
        beside = honest(port, "127.66.0.7", 36, 4, b"/metrics")
        assert status(run_dir) == "node: gpu1\n"
    print(f"scrapes: {answered} of 36 from another network, {beside} of 36 from one of the flood's")  # noqa: T201
    assert status(run_dir) == "node: gpu1\n"
    assert answered >= 30  # a host under load may take longer to read a request than the flood to come again
