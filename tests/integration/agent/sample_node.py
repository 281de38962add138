"""A node for tests: its store, and the server that answers the hub for samples, over real munge and HTTP."""

import contextlib
import gzip
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from http.client import HTTPConnection
from pathlib import Path

from prometheus_client.registry import CollectorRegistry
from tests.unit.agent.fakes import START_US
from tests.unit.agent.samples import a_store

from gpuwaste.agent.node_store import NodeStore
from gpuwaste.agent.sample_server import Askers, SampleServer
from gpuwaste.core.typed import decode
from gpuwaste.ledger.curves.curve_types import NodeSamples
from gpuwaste.net.metrics_server import MetricsServer
from gpuwaste.net.munge_credentials import Munge, MungeChecker, MungeIssuer
from gpuwaste.net.request_signing import ACK_HEADER, sign_request, verify_ack
from gpuwaste.net.sample_query import SAMPLES_PATH, RunWindow, SampleQuestion
from gpuwaste.testing.patience import patient

HUB = os.geteuid()
START = 1_700_000_000
WINDOW = RunWindow(9, START, START_US - 1, START_US + 86_400_000_000, 2000)
_TRIES = 4  # as the hub tries: the child that reads is nice, and a host full of other tests can starve it


@dataclass
class Answer:
    """What came back."""

    status: int
    body: bytes
    ack: str


@dataclass
class Node:
    """A node's store and the server that answers for it."""

    munge: str
    store: NodeStore
    exporter: MetricsServer
    raw: Path

    @property
    def port(self) -> int:
        """Where it answers."""
        return self.exporter.port

    def get(self, target: str, headers: dict[str, str]) -> Answer:
        """Send a request."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=patient(30))
        try:
            connection.request("GET", target, headers=headers)
            answer = connection.getresponse()
            return Answer(answer.status, answer.read(), answer.getheader(ACK_HEADER, ""))
        finally:
            connection.close()

    def asked(self, window: RunWindow = WINDOW, node: str = "gpu1") -> Answer:
        """Ask as the hub does."""
        target = SampleQuestion(node, window).target
        return self.get(target, sign_request(MungeIssuer(Munge(self.munge)), "GET", target))

    def samples(self, **changes: int) -> NodeSamples:
        """Return the samples of a window, their signature checked."""
        for _ in range(_TRIES):
            answer = self.asked(replace(WINDOW, **changes))
            if b"cannot be read" not in answer.body[:100]:
                break
        assert answer.status == 200, answer.body
        verify_ack(MungeIssuer(Munge(self.munge), HUB), answer.ack, answer.body)
        return decode(gzip.decompress(answer.body), NodeSamples)


@contextlib.contextmanager
def answering_node(munge: str, directory: Path) -> Iterator[Node]:
    """Run the server of node gpu1 on a store in `directory`; it answers this process' user."""
    raw = directory / "raw"
    store = a_store(directory)
    askers = Askers({"munge": MungeChecker(Munge(munge))}, frozenset({HUB}))
    server = SampleServer(raw, "gpu1", askers, kept_days=lambda: 14, gap_us=25_000_000)
    exporter = MetricsServer("127.0.0.1:0", CollectorRegistry(), section="agent", answers={SAMPLES_PATH: server.answer})
    exporter.start()
    yield Node(munge, store, exporter, raw)
    exporter.stop()
    store.close()
