"""The only room of golden answers that knows the house: a hub in this process, its commands, and what the site says.

Whatever is renamed or moved in gpuwaste is followed here and nowhere else in tools/golden.
"""

import contextlib
import io
import json
import os
import pwd
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

import anyio
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from tests.integration.hub.bundles import promote, write
from tests.unit.plan.facts import CONFIG, LIMITS, MEMBERS, NODES, PARTITIONS

from gpuwaste.act.events.event_service import EventService
from gpuwaste.act.notify.notify_parts import NotifyParts
from gpuwaste.act.rescoring_part import RescoringPart
from gpuwaste.act.rules.rule_service import RuleService
from gpuwaste.advice.predict.prediction_service import Predictions
from gpuwaste.cli.main import main
from gpuwaste.core.config import config_from_dict
from gpuwaste.hub.hub import Hub
from gpuwaste.hub.hub_daemon import make_checkers
from gpuwaste.hub.hub_ports import HubPorts
from gpuwaste.hub.server import WebServer, listening, open_tcp
from gpuwaste.jobs.gpu_assignments import GpuAssignments
from gpuwaste.jobs.importers.accounting_importer import Importer
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.ledger.curves.curve_service import Curves
from gpuwaste.ledger.hour import AllocationHour, encode_hour
from gpuwaste.ledger.hour_store import upsert_hours
from gpuwaste.ledger.judging import Judging
from gpuwaste.ledger.now.now_reads import NowReads
from gpuwaste.ledger.open_runs import SharedRuns
from gpuwaste.ledger.rollup import Roller
from gpuwaste.net.batch import Batch, Envelope, encode_batch
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.clients.slurmctld_jobs import RunningJob
from gpuwaste.slurm.formats.gpu_positions import GresOnNode
from gpuwaste.slurm.site.cluster_model import Node, Partition
from gpuwaste.testing.daemon_config import to_toml
from gpuwaste.testing.fake_slurm import FakeSlurm
from gpuwaste.testing.mail_server import MailServer, running_mail_server
from gpuwaste.testing.recording.clock import PlayedClock

__all__ = ["AllocationHour", "JobRecord", "World", "running_world"]

OPERATOR: Final = "oper"
USER: Final = "alice"
COORDINATOR: Final = "carol"
STRANGER: Final = "mallory"
NOBODY: Final = ""
ADVISOR: Final = "gpuwaste"
ACTOR: Final = "gpuwaste-actor"
HOSTS: Final = ("gpu1", "gpu2", "gpu3", "gpu4", "gpu5", "gpu99")
NAMES: Final = (OPERATOR, USER, COORDINATOR, STRANGER, "bob", "dave", ADVISOR, ACTOR, *HOSTS)
_HOURS_AT_ONCE: Final = 500
_WAIT_S: Final = 120.0
_FIRST_DAYS: Final = 90


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back over HTTP."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Printed:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str


@dataclass(slots=True)
class World:
    """A hub at a moment that stands still, and everybody who asks it."""

    folder: Path
    hub: Hub
    slurm: FakeSlurm
    clock: PlayedClock
    port: int
    mail: MailServer

    @property
    def now(self) -> int:
        """The moment, UTC seconds."""
        return self.clock.utc_us() // 1_000_000

    def set(self, now: int) -> None:
        """Go on to a moment: the hub's clock and that of the commands."""
        self.clock.set(now * 1_000_000)

    def send(self, method: str, target: str, body: bytes = b"", headers: Mapping[str, str] | None = None) -> Answer:
        """Send a request on a connection of its own."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=_WAIT_S)
        try:
            connection.request(method, target, body or None, dict(headers or {}))
            response = connection.getresponse()
            found = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, found, response.read())
        finally:
            connection.close()

    def ask(self, person: str, method: str, target: str, body: bytes = b"") -> Answer:
        """Ask the API as somebody, NOBODY for without a credential."""
        return self.send(method, target, body, {"Authorization": f"Bearer {_token(person)}"} if person else {})

    def order(self, person: str, target: str, **fields: Any) -> Answer:
        """Post a JSON object to the API as somebody."""
        return self.ask(person, "POST", target, json.dumps(fields).encode())

    def first_bytes(self, person: str, target: str, end: bytes) -> bytes:
        """Return the beginning of a stream, as far as `end`."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=_WAIT_S)
        try:
            connection.request("GET", target, headers={"Authorization": f"Bearer {_token(person)}"})
            response, found = connection.getresponse(), b""
            while end not in found and (part := response.read1(65536)):
                found += part
            return found
        finally:
            connection.close()

    def cookie(self, person: str) -> Mapping[str, str]:
        """Sign somebody in to the pages; return the header of their session."""
        link = json.loads(self.ask(person, "POST", "/v1/web/link").body)["url"]
        entered = self.send("POST", "/enter", urlencode({"link": link}).encode(), {"Sec-Fetch-Site": "same-origin"})
        return {"Cookie": entered.headers["set-cookie"].partition(";")[0]}

    def config(self, person: str, **sections: Mapping[str, Any]) -> Path:
        """Return the configuration file with which somebody calls the commands."""
        path = self.folder / f"{person}.toml"
        common = {
            "cluster": "gw", "hub_url": f"http://127.0.0.1:{self.port}", "slurm_conf": "/nonexistent",
            "slurm_timeout_s": 20.0, "token_file": str(self.folder / f"{person}.token"),
            "models_dir": str(self.folder / "models"),
        }  # fmt: skip
        path.write_text(to_toml({"common": common, **sections}), encoding="utf-8")
        return path

    def command(self, person: str, words: Sequence[str], stdin: bytes = b"") -> Printed:
        """Run a command in this process, as if somebody had typed it at this moment."""
        return _command(words, person, lambda: self.clock.utc_us() / 1e6, stdin)

    def send_hours(self, hours: Sequence[AllocationHour]) -> Iterator[tuple[str, Answer]]:
        """Have each node send its rows; yield what the hub answers to each batch."""
        for node in HOSTS:
            own = [encode_hour(replace(hour, node=node)) for hour in hours if hour.node == node]
            for first in range(0, len(own), _HOURS_AT_ONCE):
                lot = Batch(tuple(own[first : first + _HOURS_AT_ONCE]), f"{node}-{first}")
                answer = self.ask(node, "POST", "/v1/hours", encode_batch(Envelope("gw", node, "boot", "1"), lot))
                yield f"{node} {first}", answer

    def store_others(self, records: Sequence[JobRecord], hours: Sequence[AllocationHour]) -> None:
        """Keep runs and hours of another cluster, which another hub or an import has brought into the store."""
        upsert_jobs(self.hub.store, list(records))
        upsert_hours(self.hub.store, list(hours))

    def tools(self, person: str, calls: Sequence[tuple[str, Mapping[str, Any]]]) -> list[str]:
        """Return the list of tools of the Model Context Protocol and what some calls answer."""
        words = ["-m", "gpuwaste.cli", "mcp", "--config", str(self.config(person))]
        server = StdioServerParameters(command=sys.executable, args=words, env=dict(os.environ))

        async def session() -> list[str]:
            async with Client(stdio_client(server)) as client:
                found = [(await client.list_tools()).model_dump_json()]
                for name, arguments in calls:
                    found.append((await client.call_tool(name, dict(arguments))).model_dump_json())
                return found

        return anyio.run(session)

    def look(self) -> None:
        """Let each part of the hub that works beside the answers do what is due, once and in order."""
        hub, stop = self.hub, threading.Event()
        hub.get(Importer).step()
        hub.get(Judging).step(stop)
        hub.get(Roller).step(stop)
        hub.get(Predictions).step()
        hub.get(SharedRuns).take()
        hub.get(RescoringPart).rescorer.step()
        hub.get(RuleService).step()
        hub.get(EventService).look()
        hub.get(NowReads).renew()
        notifier = hub.get(NotifyParts).notifier
        if notifier is not None:
            notifier.step()


@contextlib.contextmanager
def running_world(folder: Path, now: int, records: Sequence[JobRecord]) -> Iterator[World]:
    """Run a hub at `now` that accounting tells of these runs."""
    for name in NAMES:
        _write_closed(folder / f"{name}.token", _token(name))
    _write_closed(folder / "tokens", "".join(f"{name} {_token(name)}\n" for name in NAMES))
    write(folder / "models", "older", -2.0)
    promote(folder / "models", "second", 0.4)
    _lay_out_commands(folder / "bin", now)
    clock, slurm = PlayedClock(now * 1_000_000), _slurm(records, now)
    with running_mail_server() as mail:
        socket = open_tcp("127.0.0.1:0")
        port = int(listening(socket).rpartition(":")[2])
        config = config_from_dict(_keys(folder, port, mail.port), "golden")
        ports = HubPorts(slurm, clock, make_checkers(config), groups_of=lambda _: frozenset())
        hub = Hub(config, ports)
        server = WebServer(hub.app, socket)
        serving = threading.Thread(target=server.run, kwargs={"signals": False}, name="hub", daemon=True)
        serving.start()
        hub.get(GpuAssignments).start()
        try:
            yield World(folder, hub, slurm, clock, port, mail)
        finally:
            server.stop()
            serving.join(_WAIT_S)
            hub.get(GpuAssignments).close()
            hub.get(Curves).close()
            hub.store.close()


def _keys(folder: Path, port: int, mail_port: int) -> dict[str, Any]:
    return {
        "common": {
            "cluster": "gw", "hub_url": f"http://127.0.0.1:{port}", "token_file": str(folder / "oper.token"),
            "models_dir": str(folder / "models"), "run_dir": str(folder / "run"),
        },
        "hub": {
            "listen": f"127.0.0.1:{port}", "state_dir": str(folder / "hub"), "node_tokens_file": str(folder / "tokens"),
            "agent_user": ADVISOR, "actor_user": ACTOR, "check_origin": False, "sacct_first_days": _FIRST_DAYS,
            "map_min_interval_s": 0.01, "unaccounted_days": 0, "rescore": True, "rules_dir": str(folder / "rules.d"),
            "inlets_dir": str(folder / "inlets.d"), "outlets_dir": str(folder / "outlets.d"), "metrics_accounts": True,
        },
        "advisor": {"policies_dir": str(folder / "policies.d")},
        "energy": {"price_per_kwh": 0.25, "g_co2e_per_kwh": 380.0, "pue": 1.2},
        "notify": {
            "smtp_host": "127.0.0.1", "smtp_port": mail_port, "sender": "hpc@example.org", "dry_run": False,
            "address": "{user}@example.org", "min_wasted_gpu_h": 0.5, "min_wasted_share": 0.05,
            "staff": ["staff@example.org"], "zone": "UTC", "limit_mail": True, "limit_min_h": 0.0,
            "text": "Ask hpc@example.org.",
        },
    }  # fmt: skip


def _slurm(records: Sequence[JobRecord], now: int) -> FakeSlurm:
    """Return a Slurm whose nodes have four a100 each, on which the open runs are, and a job that waits."""
    nodes = [
        Node(name, 64, 512 << 30, {"a100": 4}, state="MIXED", hostname=name, address=f"10.0.0.{number}",
             version="22.05.8", partitions=("gpu", "whole"))
        for number, name in enumerate(HOSTS[:5], 1)
    ]  # fmt: skip
    names = tuple(node.name for node in nodes)
    partitions = [
        Partition("gpu", names, max_time_s=4 * 86400, default_time_s=3600, default=True),
        Partition("whole", names, whole_nodes=True),
    ]
    return FakeSlurm(
        node_list=nodes, partition_list=partitions, records=records, levels={OPERATOR: "Operator"},
        account_coordinators={"physics": frozenset({COORDINATOR})},
        running=[_running(job, now) for job in records if job.end is None and job.cluster == "gw"],
    )  # fmt: skip


def _running(job: JobRecord, now: int) -> RunningJob:
    held = {} if job.start is None else {job.nodes: GresOnNode(tuple(range(job.gpus or 0)), job.gpus or 0, ("a100",))}
    return RunningJob(
        job.job_id, job.printed_id, job.name, job.user, None, job.account, job.partition, job.qos, job.state,
        job.submit, job.start, None if job.start is None else now + 86400, 0, job.nodes, len(held), held,
        time_limit_s=job.time_limit_s, tres=job.alloc_tres, req_tres=job.req_tres, priority=100,
        reason="" if held else "Resources",
    )  # fmt: skip


def _lay_out_commands(folder: Path, now: int) -> None:
    """Put Slurm's commands first in PATH, as scripts that print what a small site prints."""
    folder.mkdir()
    texts = {"partition": PARTITIONS, "node": NODES, "config": CONFIG, "assoc_mgr": LIMITS, "assoc": MEMBERS}
    for name, text in texts.items():
        (folder / f"{name}.txt").write_text(text, encoding="utf-8")
    shown = "".join(f'{name}) cat "{folder}/{name}.txt"; exit;;\n' for name in texts)
    at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now + 4000))
    said = f"sbatch: Job 1 to start at {at} using 1 processors on nodes n in partition gpu"
    scripts = {
        "scontrol": f"for word; do case $word in\n{shown}esac; done\nexit 1\n",
        "sacctmgr": f'cat "{folder}/assoc.txt"\n',
        "sbatch": f'echo "{said}" >&2\n',
        "sacct": "exit 1\n",
    }
    for name, text in scripts.items():
        path = folder / name
        path.write_text(f"#!/bin/sh\n{text}", encoding="utf-8")
        path.chmod(0o755)
    os.environ["PATH"] = f"{folder}:{os.environ['PATH']}"


def _token(name: str) -> str:
    return f"token-of-{name}".ljust(24, "0")


def _write_closed(path: Path, text: str) -> None:
    path.touch(mode=0o600)
    path.write_text(text, encoding="utf-8")


def _command(words: Sequence[str], person: str, seconds: Callable[[], float], stdin: bytes) -> Printed:
    """Run a command of this process at a moment, and as the Unix user of a name."""
    own, clock, streams = pwd.getpwuid, time.time, (sys.stdin, sys.stdout, sys.stderr, sys.argv)

    def user(uid: int) -> pwd.struct_passwd:
        found = own(os.getuid()) if uid == os.getuid() else own(uid)
        return pwd.struct_passwd((person, *found[1:])) if person and uid == os.getuid() else found

    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    sys.stdin, sys.stdout, sys.stderr = io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"), out, err
    pwd.getpwuid, time.time, sys.argv = user, seconds, ["gpuwaste", *words]
    try:
        code = main(list(words))
    except SystemExit as end:
        code = int(end.code or 0)
    finally:
        sys.stdin, sys.stdout, sys.stderr, sys.argv = streams
        pwd.getpwuid, time.time = own, clock
    return Printed(code, *(_printed(stream) for stream in (out, err)))


def _printed(stream: io.TextIOWrapper) -> str:
    stream.flush()
    stream.seek(0)
    return stream.read()
