"""A hub in this process for tests: real HTTP and a real store, with Slurm and credentials played by fakes."""

import contextlib
import json
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from tests.unit.hub.rig import AGENT_UID

from gpuwaste.core.clock import SystemClock
from gpuwaste.core.config import NotifyConfig
from gpuwaste.core.errors import AuthError
from gpuwaste.core.groups import user_name
from gpuwaste.hub.app import build_app
from gpuwaste.hub.backup import Backups
from gpuwaste.hub.cluster_facts import ClusterFacts
from gpuwaste.hub.identity import Identity
from gpuwaste.hub.ingest import Ingest
from gpuwaste.hub.map import ClusterMap
from gpuwaste.hub.metrics import HubMetrics
from gpuwaste.hub.notify.parts import notify_parts
from gpuwaste.hub.notify.runner import Accounting
from gpuwaste.hub.predictions import Predictions
from gpuwaste.hub.protocol import Bounds
from gpuwaste.hub.reads import Reads
from gpuwaste.hub.roles import Roles
from gpuwaste.hub.server import WebServer, open_tcp, open_unix
from gpuwaste.hub.services import ServiceLimits, Services
from gpuwaste.hub.unaccounted import Unaccounted
from gpuwaste.hub.unaccounted_store import UnaccountedStore
from gpuwaste.hub.verdict_ingest import VerdictIngest
from gpuwaste.hub.verdict_reads import VerdictReads
from gpuwaste.slurm.cluster_config import NodeInfo
from gpuwaste.slurm.defaults import SiteDefaults
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.store.hub.verdict_store import VerdictStore
from gpuwaste.testing.fake_slurm import FakeSlurm
from gpuwaste.waste.settings import LedgerSettings
from gpuwaste.wire.identity import Caller, RetryableAuthError
from gpuwaste.wire.signing import request_digest

USERS = {1001: "alice", 1002: "bob", 1003: "carol", 1004: "oper", AGENT_UID: "gpuwaste"}


class FakeChecker:
    """Credentials of the form UID:ORIGIN:NONCE:DIGEST, each good once, as munge's are."""

    def __init__(self) -> None:
        self._used: set[str] = set()

    def check(self, credential: str, digest: str) -> Caller:
        """Return the sender."""
        if credential == "expired":
            raise RetryableAuthError("munge: Expired credential (15)")
        parts = credential.split(":")
        if len(parts) != 4:
            raise AuthError("munge: Invalid credential format (9)")
        if credential in self._used:
            raise AuthError("munge: Replayed credential (17)")
        self._used.add(credential)
        if parts[3] != digest:
            raise AuthError("the credential was made for another request")
        return Caller(int(parts[0]), parts[1], "munge")

    def issue_ack(self, caller: Caller, digest: str) -> str:
        """Sign."""
        return f"ack:{caller.uid}:{digest}"


@dataclass
class Answer:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body's JSON."""
        return json.loads(self.body)


@dataclass
class Rig:
    """One running hub; `slurm` may be changed under it."""

    store: HubStore
    slurm: FakeSlurm
    metrics: HubMetrics
    cluster_map: ClusterMap
    clock: SystemClock
    services: Services
    limits: ServiceLimits
    server: WebServer
    port: int
    socket: Path
    directory: Path
    _nonce: int = field(default=0)

    def credential(self, uid: int, method: str, target: str, body: bytes = b"", *, origin: str = "10.0.0.1") -> str:
        """Return a fresh value for Authorization."""
        self._nonce += 1
        return f"Munge {uid}:{origin}:{self._nonce}:{request_digest(method, target, body)}"

    def send(self, method: str, target: str, body: bytes = b"", headers: dict[str, str] | None = None) -> Answer:
        """Send a request on a connection of its own."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            # A hub that refuses a large body early closes before all of it is sent; its answer is there all the same.
            with contextlib.suppress(BrokenPipeError):
                connection.request(method, target, body or None, headers or {})
            response = connection.getresponse()
            return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
        finally:
            connection.close()

    def get(self, uid: int, target: str) -> Answer:
        """Read as a user."""
        return self.send("GET", target, headers={"Authorization": self.credential(uid, "GET", target)})

    def post(self, body: bytes, uid: int = AGENT_UID, origin: str = "10.0.0.1", target: str = "/v1/hours") -> Answer:
        """Send a batch."""
        authorization = self.credential(uid, "POST", target, body, origin=origin)
        return self.send("POST", target, body, {"Authorization": authorization})

    def hours(self) -> list[dict[str, Any]]:
        """Return what the store holds."""
        with self.store.reader() as db:
            cursor = db.execute("SELECT * FROM hours ORDER BY job_id, gpu_uuid, hour_utc")
            columns = [c[0] for c in cursor.description or ()]
            return [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]


@contextlib.contextmanager
def running_hub(
    directory: Path,
    slurm: FakeSlurm | None = None,
    limits: ServiceLimits | None = None,
    tls: tuple[str, str] | None = None,
    *,
    notify: NotifyConfig | None = None,
    bounds: Bounds | None = None,
    clock: SystemClock | None = None,
    unaccounted: Callable[[UnaccountedStore], Unaccounted | None] = lambda _: None,
) -> Iterator[Rig]:
    """Run a hub on a free port and on a Unix socket."""
    clock = clock or SystemClock()
    slurm = slurm or FakeSlurm(
        node_list=[NodeInfo("gpu1", address="10.0.0.1"), NodeInfo("gpu2", address="10.0.0.2")],
        levels={"oper": "Operator", "alice": "None"},
        account_coordinators={"proj1": frozenset({"carol"})},
    )
    store = HubStore.open(directory / "hub.duckdb", clock)
    site = ClusterFacts(slurm, clock)
    metrics = HubMetrics(clock)
    identity = Identity(
        {"munge": FakeChecker()},
        Roles(slurm, clock, groups_of=lambda _: frozenset()),
        site,
        AGENT_UID,
        lambda uid: USERS.get(uid) or user_name(uid),
    )
    cluster_map = ClusterMap(slurm, store, site, clock, 0.01)
    predictions = Predictions(
        store, site.cluster, clock=clock, metrics=metrics, models_dir=directory / "models", state_dir=directory,
        policies_dir=directory / "policies.d",
        defaults=lambda: SiteDefaults.ask(slurm) if slurm.partition_list else None,
    )  # fmt: skip
    verdict_store = VerdictStore(store, clock)
    verdicts = VerdictReads(verdict_store, clock)
    services = Services(
        identity,
        Ingest(store, identity, site, metrics, clock, unaccounted=unaccounted(UnaccountedStore(store))),
        Reads(store, LedgerSettings(), clock),
        cluster_map,
        metrics,
        predictions,
        verdicts,
        VerdictIngest(verdict_store, identity, site, metrics, clock),
        notify_parts(
            notify or NotifyConfig(), store, LedgerSettings(), clock, lambda: Accounting(None, failed=False)
        ).service,
        Backups(store, directory, clock, lambda: "gw"),
        lambda: {"status": "ok"},
    )
    limits = limits or ServiceLimits(body_deadline_s=20, map_wait_s=10)
    app = build_app(services, "0", limits)
    short = tempfile.TemporaryDirectory(prefix="gwrig", dir="/tmp")  # a Unix socket's path has 107 bytes
    tcp, path = open_tcp("127.0.0.1:0"), Path(short.name) / "hub.sock"
    port = tcp.getsockname()[1]
    server = WebServer(app, tcp, open_unix(path), tls, bounds or Bounds(header_s=20.0))
    thread = threading.Thread(target=server.run, kwargs={"signals": False})
    cluster_map.start()
    thread.start()
    try:
        yield Rig(store, slurm, metrics, cluster_map, clock, services, limits, server, port, path, directory)
    finally:
        server.stop()
        thread.join(30)
        cluster_map.stop()
        store.close()
        short.cleanup()
