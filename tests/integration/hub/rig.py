"""A hub in this process for tests: real HTTP and a real store, with Slurm and credentials played by fakes."""

import contextlib
import json
import tempfile
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from gpuwaste.core.act_config import NotifyConfig
from gpuwaste.core.advice_config import AdvisorConfig, ModelsConfig
from gpuwaste.core.clock import SystemClock
from gpuwaste.core.config import Config
from gpuwaste.core.errors import AuthError
from gpuwaste.core.groups import user_name
from gpuwaste.core.hub_config import HubConfig, WebConfig
from gpuwaste.core.scope import Scope
from gpuwaste.core.site_config import AnalyticsConfig, CommonConfig, EnergyConfig
from gpuwaste.hub.admission_control import PerUserLimit
from gpuwaste.hub.hub import Hub
from gpuwaste.hub.hub_metrics import HubMetrics
from gpuwaste.hub.hub_ports import HubPorts, ServiceLimits
from gpuwaste.hub.protocol import Bounds
from gpuwaste.hub.server import WebServer, open_tcp, open_unix
from gpuwaste.hub.sign_in.visitors import Visitors
from gpuwaste.jobs.gpu_assignments import GpuAssignments
from gpuwaste.jobs.importers.accounting_importer import Importer
from gpuwaste.ledger.curves.curve_service import Curves
from gpuwaste.net.request_signing import (
    Caller,
    CredentialChecker,
    CredentialIssuer,
    RetryableAuthError,
    Via,
    request_digest,
)
from gpuwaste.slurm.site.cluster_model import Node
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.testing.fake_slurm import FakeSlurm
from gpuwaste.testing.hub_rows import AGENT_UID
from gpuwaste.testing.patience import patient

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

    hub: Hub
    slurm: FakeSlurm
    clock: SystemClock
    server: WebServer
    port: int
    socket: Path
    directory: Path
    ports: HubPorts
    _nonce: int = field(default=0)

    @property
    def store(self) -> HubStore:
        """The hub's store."""
        return self.hub.store

    @property
    def turns(self) -> PerUserLimit:
        """How many questions of a user are in work."""
        return self.hub.exchange.turns

    @property
    def metrics(self) -> HubMetrics:
        """The hub's metrics."""
        return self.hub.get(HubMetrics)

    def credential(self, uid: int, method: str, target: str, body: bytes = b"", *, origin: str = "10.0.0.1") -> str:
        """Return a fresh value for Authorization."""
        self._nonce += 1
        return f"Munge {uid}:{origin}:{self._nonce}:{request_digest(method, target, body)}"

    def send(self, method: str, target: str, body: bytes = b"", headers: dict[str, str] | None = None) -> Answer:
        """Send a request on a connection of its own."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=patient(20))
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

    def page(self, uid: int, target: str) -> Answer:
        """Look at a page as a user who signs in for it."""
        return self.send("GET", target, headers={"Cookie": self.cookie(uid)})

    def cookie(self, uid: int) -> str:
        """Sign a user in by a link; return NAME=VALUE of their session's cookie."""
        body = urlencode({"link": self.hub.get(Visitors).link(Scope(USERS[uid]))}).encode()
        entered = self.send("POST", "/enter", body, {"Sec-Fetch-Site": "same-origin"})
        return entered.headers["set-cookie"].partition(";")[0]

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
    unaccounted_days: int = 0,
    agents: CredentialIssuer | None = None,
    hub_keys: Mapping[str, Any] | None = None,
    common_keys: Mapping[str, Any] | None = None,
    energy: EnergyConfig | None = None,
    web: WebConfig | None = None,
    analytics: AnalyticsConfig | None = None,
    models: ModelsConfig | None = None,
    agent_uid: int = AGENT_UID,
    checkers: Mapping[Via, CredentialChecker] | None = None,
) -> Iterator[Rig]:
    """Run a hub on a free port and on a Unix socket; `checkers` verify credentials in addition to those of munge."""
    clock = clock or SystemClock()
    slurm = slurm or FakeSlurm(
        node_list=[Node("gpu1", address="10.0.0.1"), Node("gpu2", address="10.0.0.2")],
        levels={"oper": "Operator", "alice": "None"},
        account_coordinators={"proj1": frozenset({"carol"})},
    )
    config = Config(
        common=CommonConfig(models_dir=str(directory / "models"), **(common_keys or {})),
        energy=energy or EnergyConfig(),
        hub=HubConfig(
            state_dir=str(directory),
            map_min_interval_s=0.01,
            unaccounted_days=unaccounted_days,
            socket="hub.sock",
            **(hub_keys or {}),
        ),
        advisor=AdvisorConfig(policies_dir=str(directory / "policies.d")),
        notify=notify or NotifyConfig(),
        web=web or WebConfig(),
        analytics=analytics or AnalyticsConfig(),
        models=models or ModelsConfig(),
    )
    ports = HubPorts(
        slurm, clock, {"munge": FakeChecker(), **(checkers or {})},
        name_of=lambda uid: USERS.get(uid) or user_name(uid),
        groups_of=lambda _: frozenset(),
        uid_of=lambda *_: agent_uid,
        agents=agents,
        limits=limits or ServiceLimits(body_deadline_s=20, map_wait_s=10),
    )  # fmt: skip
    hub = Hub(config, ports)
    if slurm.partition_list:
        hub.get(Importer).step()
    short = tempfile.TemporaryDirectory(prefix="gwrig", dir="/tmp")  # a Unix socket's path has 107 bytes
    tcp, path = open_tcp("127.0.0.1:0"), Path(short.name) / "hub.sock"
    port = tcp.getsockname()[1]
    server = WebServer(hub.app, tcp, open_unix(path), tls, bounds or Bounds(header_s=20.0))
    thread = threading.Thread(target=server.run, kwargs={"signals": False})
    hub.get(GpuAssignments).start()
    thread.start()
    try:
        yield Rig(hub, slurm, clock, server, port, path, directory, ports)
    finally:
        server.stop()
        thread.join(30)
        hub.get(GpuAssignments).close()
        hub.get(Curves).close()
        hub.store.close()
        short.cleanup()
