"""Curves under attack: a node that lies or floods costs its own answer, a user makes nodes work within bounds."""

import contextlib
import gzip
import os
import socket
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace
from tests.integration.hub.rig import Rig, running_hub
from tests.integration.hub.test_reads import ALICE

from gpuwaste.core.clock import SystemClock
from gpuwaste.core.refusal import Refusal
from gpuwaste.core.response_cache import ResponseCache
from gpuwaste.jobs.cluster_facts import ClusterFacts
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.ledger.curves.agent_curves import AgentSamples
from gpuwaste.ledger.curves.curve_service import QuestionBudget
from gpuwaste.ledger.curves.curve_types import CurveSeries, GpuCurves, NodeCurves, NodeSamples
from gpuwaste.net.munge_credentials import Munge, MungeIssuer
from gpuwaste.net.request_signing import ACK_HEADER, ack_digest
from gpuwaste.net.sample_query import MOST_ANSWER_B, RunWindow, SampleQuestion
from gpuwaste.slurm.site.cluster_model import Node
from gpuwaste.testing.clocks import FakeClock
from gpuwaste.testing.fake_slurm import FakeSlurm
from gpuwaste.testing.hub_rows import record
from gpuwaste.testing.lone_hub import munged_path, private_munged

pytestmark = [
    pytest.mark.sockets,
    pytest.mark.skipif(munged_path() is None, reason="munged is not installed (Debian: munge)"),
]
START = 1_767_225_600
QUESTION = SampleQuestion("gpu1", RunWindow(9, START, START * 1_000_000, (START + 300) * 1_000_000, 2000))
COLUMN = CurveSeries(mean=[1.0, None, 3.0])
GPU = GpuCurves(gpu_uuid="GPU-a", util_pct=COLUMN)
HONEST = NodeSamples(
    schema=1,
    node="gpu1",
    job_id=9,
    start=START,
    kept_since=START,
    kept_days=14,
    unreadable_days=0,
    interval_ms=0,
    t_ms=[START * 1000 + 10_000 * n for n in (1, 2, 3)],
    gpus=[GPU],
)
Speaker = Callable[["HostileNode", socket.socket], None]


@dataclass
class HostileNode:
    """A node whose program at the agent's port says whatever `speak` does."""

    munge: str
    speak: Speaker
    listener: socket.socket = field(default_factory=lambda: socket.create_server(("127.0.0.1", 0), backlog=256))
    sent_b: int = 0
    asked: int = 0

    def run(self) -> None:
        """Answer until the listener is closed."""
        with contextlib.suppress(OSError):
            while True:
                peer, _ = self.listener.accept()
                threading.Thread(target=self._serve, args=[peer], daemon=True).start()

    def _serve(self, peer: socket.socket) -> None:
        with contextlib.suppress(OSError), peer:
            data = b""
            while b"\r\n\r\n" not in data:
                data += peer.recv(4096)
            self.asked += 1
            self.speak(self, peer)

    def send(self, peer: socket.socket, data: bytes) -> None:
        """Send and count."""
        peer.sendall(data)
        self.sent_b += len(data)

    def signed(self, body: bytes) -> str:
        """Return the header that the agents' user signs an answer with."""
        return f"{ACK_HEADER}: {Munge(self.munge).encode(ack_digest(body).encode())}\r\n"


def says(body: bytes, header: Callable[[HostileNode, bytes], str] = HostileNode.signed) -> Speaker:
    """Return what answers with a body."""

    def speak(node: HostileNode, peer: socket.socket) -> None:
        head = f"HTTP/1.0 200 OK\r\n{header(node, body)}Content-Length: {len(body)}\r\n\r\n"
        node.send(peer, head.encode() + body)

    return speak


def packed(samples: NodeSamples) -> bytes:
    """Return an answer as an agent packs it."""
    return gzip.compress(msgspec.json.encode(samples))


@pytest.fixture(scope="module")
def munge() -> Iterator[str]:
    with private_munged() as path:
        yield path


@contextlib.contextmanager
def hostile(munge: str, speak: Speaker) -> Iterator[HostileNode]:
    """Run a hostile node."""
    node = HostileNode(munge, speak)
    thread = threading.Thread(target=node.run)
    thread.start()
    try:
        yield node
    finally:
        node.listener.shutdown(socket.SHUT_RDWR)
        node.listener.close()
        thread.join(20)


def told(node: HostileNode, patience_s: float = 20.0, own: tuple[str, ...] = (), most_gpus: int = 1) -> NodeCurves:
    """Ask a node as the hub does, with real munge."""
    slurm = FakeSlurm(node_list=[Node("gpu1", address="127.0.0.1")])
    url = f"http://{{address}}:{node.listener.getsockname()[1]}"
    issuer = MungeIssuer(Munge(node.munge), os.geteuid())
    agents = AgentSamples(
        url, "", issuer, ClusterFacts(slurm, SystemClock(), "gw"), SystemClock(), patience_s=patience_s
    )
    return agents.ask(QUESTION, own, most_gpus)


def test_an_honest_answer_is_taken(munge: str) -> None:
    """What the other tests change is refused for their change alone: unchanged, the answer is believed."""
    with hostile(munge, says(packed(HONEST))) as node:
        found = told(node)
    assert (found.state, found.t_ms, found.gpus) == ("answered", HONEST.t_ms, [GPU])


def test_a_busy_agent_is_asked_again(munge: str) -> None:
    """An agent that answers somebody else's question first is asked until it has time."""

    def busy_twice(node: HostileNode, peer: socket.socket) -> None:
        if node.asked <= 2:
            node.send(peer, b"HTTP/1.0 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n")
        else:
            says(packed(HONEST))(node, peer)

    with hostile(munge, busy_twice) as node:
        assert told(node).state == "answered"
        assert node.asked == 3


def test_an_answer_without_end_is_hung_up_on(munge: str) -> None:
    """A node that sends a gigabyte gets rid of a few megabytes: the hub hangs up and says that the answer is none."""

    def flood(node: HostileNode, peer: socket.socket) -> None:
        node.send(peer, b"HTTP/1.0 200 OK\r\n\r\n")
        for _ in range(1024):
            node.send(peer, b"x" * (1 << 20))

    with hostile(munge, flood) as node:
        found = told(node)
    assert found.state == "invalid"
    assert node.sent_b < MOST_ANSWER_B + (16 << 20)  # what lies in sockets' buffers


def test_an_answer_that_unpacks_without_end_is_rejected(munge: str) -> None:
    """Zeros without measure in a few kilobytes, signed by the agents' user, are unpacked up to the bound alone."""
    bomb = gzip.compress(b"0" * (1 << 28))
    assert len(bomb) < MOST_ANSWER_B
    with hostile(munge, says(bomb)) as node:
        assert told(node).state == "invalid"


def test_a_slow_drip_ends_at_the_deadline(munge: str) -> None:
    """A node that sends a byte now and then for ever is given up, whatever each byte renews."""
    stop = threading.Event()

    def drip(node: HostileNode, peer: socket.socket) -> None:
        node.send(peer, b"HTTP/1.0 200 OK\r\n\r\n")
        while not stop.wait(0.05):
            node.send(peer, b"x")

    with hostile(munge, drip) as node:
        found = told(node, patience_s=1.0)
        stop.set()
    assert (found.state, found.gpus) == ("unreachable", [])
    assert node.sent_b > 0


LIES = {
    "another job": replace(HONEST, job_id=10),
    "another run": replace(HONEST, start=START + 1),
    "another node": replace(HONEST, node="gpu2"),
    "a time before the run": replace(HONEST, t_ms=[5, 6, 7]),
    "a time after the run": replace(HONEST, t_ms=[*HONEST.t_ms[:2], (START + 400) * 1000]),
    "times that go back": replace(HONEST, t_ms=HONEST.t_ms[::-1]),
    "columns of other lengths": replace(HONEST, gpus=[GpuCurves(gpu_uuid="GPU-a", power_w=CurveSeries(mean=[1.0]))]),
    "a GPU twice": replace(HONEST, gpus=[GPU, GPU]),
    "a negative value": replace(HONEST, gpus=[GpuCurves(gpu_uuid="GPU-a", util_pct=CurveSeries(mean=[-1.0, 0, 0]))]),
    "a name with markup": replace(HONEST, gpus=[GpuCurves(gpu_uuid="<script>", util_pct=COLUMN)]),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_signed_answer_that_does_not_fit_the_question_is_rejected(munge: str, lie: str) -> None:
    """An answer of another job, run or node, with other times, or that is no columns of numbers, is shown to nobody."""
    with hostile(munge, says(packed(LIES[lie]))) as node:
        found = told(node)
    assert (found.state, found.gpus, found.t_ms) == ("invalid", [], [])


def test_gpus_of_others_are_left_out(munge: str) -> None:
    """Of three GPUs that a node names, those of the ledger's run are shown, or as many as the run has."""
    gpus = [GpuCurves(gpu_uuid=f"GPU-{name}", util_pct=COLUMN) for name in "xyz"]
    with hostile(munge, says(packed(replace(HONEST, gpus=gpus)))) as node:
        by_ledger, by_count = told(node, own=("GPU-z", "GPU-a")), told(node, most_gpus=2)
    assert ([gpu.gpu_uuid for gpu in by_ledger.gpus], by_ledger.gpus_left_out) == (["GPU-z"], 2)
    assert ([gpu.gpu_uuid for gpu in by_count.gpus], by_count.gpus_left_out) == (["GPU-x", "GPU-y"], 1)


def test_an_answer_that_the_agents_user_did_not_sign_is_rejected(munge: str) -> None:
    """A user at a stopped agent's port signs as themselves, or for another body, or not at all: rejected."""
    body = packed(HONEST)

    def as_nobody(node: HostileNode, body: bytes) -> str:
        argv = ["munge", f"--socket={node.munge}", f"--string={ack_digest(body)}"]
        made = subprocess.run(argv, user=65534, capture_output=True, check=True)
        return f"{ACK_HEADER}: {made.stdout.decode().strip()}\r\n"

    headers: list[Callable[[HostileNode, bytes], str]] = [
        as_nobody,
        lambda *_: "",
        lambda node, _: HostileNode.signed(node, b"another body"),
    ]
    for header in headers:
        with hostile(munge, says(body, header)) as node:
            assert told(node).state == "invalid"


class StillClock(SystemClock):
    """The machine's clock, by which a minute never ends."""

    def mono_us(self) -> int:
        """Return always the same."""
        return 0


def test_a_thousand_requests_of_a_user_make_a_node_work_within_bounds(munge: str, tmp_path: Path) -> None:
    """A thousand requests for 200 jobs by one user: two at a time reach the node, at most 120 in a minute in all."""
    lock, now, most = threading.Lock(), 0, 0

    def older(node: HostileNode, peer: socket.socket) -> None:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        node.send(peer, b"HTTP/1.0 404 Not Found\r\n\r\n")
        with lock:
            now -= 1

    with hostile(munge, older) as node:
        slurm = FakeSlurm(node_list=[Node("gpu1", address="127.0.0.1")])
        keys = {"agent_url": f"http://{{address}}:{node.listener.getsockname()[1]}"}
        issuer = MungeIssuer(Munge(munge), os.geteuid())
        with running_hub(tmp_path, slurm, agents=issuer, hub_keys=keys, clock=StillClock()) as hub:
            statuses = _thousand(hub)
            asked = node.asked
            others = hub.get(1002, "/v1/jobs/9000/curves")
    assert sum(statuses.values()) == 1000
    assert set(statuses) <= {200, 429, 503}
    assert 1 <= asked <= 120
    assert most <= 2
    assert others.status == 200
    assert node.asked == asked + 1


def _thousand(hub: Rig) -> Counter[int]:
    upsert_jobs(hub.store, [record(9000, "bob"), *(record(job, "alice") for job in range(1, 201))])
    targets = [f"/v1/jobs/{1 + number % 200}/curves" for number in range(1000)]
    with ThreadPoolExecutor(8) as users:
        return Counter(users.map(lambda target: hub.get(ALICE, target).status, targets))


def test_a_user_s_minute_has_room_again_later() -> None:
    """Questions are counted for each user alone, and forgotten after a minute."""
    clock = FakeClock()
    budget = QuestionBudget(clock, most=10)
    for _ in range(2):
        budget.take("alice", 5)
    with pytest.raises(Refusal, match="retry later") as refused:
        budget.take("alice", 1)
    assert refused.value.extra == {"retry_after": 61}
    budget.take("bob", 10)
    clock.advance(61)
    budget.take("alice", 10)


def test_kept_answers_are_bounded_in_bytes_and_age() -> None:
    """The least used answer goes where there is no room, a large one is not kept, and an old one is not given."""
    clock = FakeClock()
    kept = ResponseCache(clock, most_b=100)
    for name in "abcd":
        kept.keep(name, b"x" * 25, 60)
    assert kept.get("a")
    kept.keep("e", b"x" * 25, 60)
    kept.keep("f", b"x" * 26, 60)
    assert [bool(kept.get(name)) for name in "abcdef"] == [True, False, True, True, True, False]
    clock.advance(61)
    assert kept.get("a") is None
