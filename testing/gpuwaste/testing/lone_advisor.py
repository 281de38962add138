"""An advisor of its own process, with or without a hub, and a plugin's side of its socket: for tests and figures."""

import contextlib
import getpass
import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from gpuwaste.advice.submit_frames import HEADER, MAX_REPLY, decode_header, decode_reply, encode_frame
from gpuwaste.core.errors import ParseError
from gpuwaste.testing.cluster_process import tail, wait_until
from gpuwaste.testing.daemon_config import free_port, to_toml
from gpuwaste.testing.own_port import start_on_port
from gpuwaste.testing.process_memory import rss_b

_SECONDS: Final = 30.0


@dataclass
class LoneAdvisor:
    """One advisor; may be killed and started again. `hub_url` may lead nowhere."""

    directory: Path
    hub_url: str
    munge_socket: str
    advisor: Mapping[str, Any] = field(default_factory=dict)
    renews: Mapping[str, Any] = field(default_factory=dict)  # keys of [models]
    prefix: tuple[str, ...] = ()  # a command to start it with, such as taskset
    port: int = 0
    process: subprocess.Popen[bytes] | None = None

    @property
    def path(self) -> Path:
        """Where it listens."""
        return self.directory / "advisor.sock"

    @property
    def policies(self) -> Path:
        """The directory of its policies."""
        return self.directory / "policies.d"

    @property
    def models(self) -> Path:
        """The registry of its models."""
        return self.directory / "models"

    @property
    def state(self) -> Path:
        """Its state_dir."""
        return self.directory / "advisor"

    @property
    def log(self) -> Path:
        """What it says."""
        return self.directory / "advisor.log"

    @property
    def said(self) -> str:
        """Its log's text."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    def configure(self) -> Path:
        """Write its gpuwaste.toml and return the path."""
        self.port = self.port or free_port()
        slurm_conf = self.directory / "slurm.conf"
        if not slurm_conf.exists():
            slurm_conf.write_text("this is no slurm.conf\n", encoding="ascii")
        own = {
            "socket": str(self.path),
            "state_dir": str(self.state),
            "policies_dir": str(self.policies),
            "slurm_user": "root",
            "listen": f"127.0.0.1:{self.port}",
            "history_every_s": 0.2,
            **self.advisor,
        }
        common = {
            "cluster": "gw",
            "hub_url": self.hub_url,
            "munge_socket": self.munge_socket,
            "slurm_conf": str(slurm_conf),
            "models_dir": str(self.models),
        }
        path = self.directory / "advisor.toml"
        sections = {"common": common, "agent": {"hub_user": getpass.getuser()}, "advisor": own, "models": self.renews}
        path.write_text(to_toml(sections), encoding="utf-8")
        return path

    def start(self) -> None:
        """Start it and wait until it answers: it is warm by then, and its metrics are there."""
        start_on_port(self, self._start)

    def _start(self) -> None:
        self.launch()
        wait_until(self._answers_or_ended, 60, "the advisor to answer", lambda: tail(self.log), poll_s=0.05)

    def launch(self) -> subprocess.Popen[bytes]:
        """Start it without waiting."""
        argv = [*self.prefix, sys.executable, "-m", "gpuwaste.cli", "advisor", "run", "--config", str(self.configure())]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(argv, stdout=log, stderr=log)
        return self.process

    def kill(self, number: signal.Signals = signal.SIGKILL) -> int:
        """End it at once, or as the signal does; returns its exit code."""
        assert self.process is not None  # noqa: S101 a caller's mistake
        self.process.send_signal(number)
        return self.process.wait(60)

    def stop(self) -> None:
        """End it in order, where it runs."""
        if self.process is not None and self.process.poll() is None:
            self.kill(signal.SIGTERM)

    def connect(self) -> socket.socket:
        """Return a connection to its socket."""
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.settimeout(_SECONDS)
        sock.connect(str(self.path))
        return sock

    def ask(self, job: Mapping[str, Any], **more: Any) -> dict[str, Any]:
        """Ask as a plugin does and return the reply. Raises ParseError where there is none, OSError."""
        request = {"op": "submit", "via": "c", "uid": 0, "deadline_us": 5_000_000, "job": dict(job), **more}
        with self.connect() as sock:
            sock.sendall(encode_frame(request))
            return read_reply(sock)

    def rss_b(self) -> int:
        """Return its resident memory, bytes."""
        assert self.process is not None  # noqa: S101 a caller's mistake
        return rss_b(self.process.pid)

    def metrics(self) -> dict[str, float]:
        """Return its metrics: name with labels -> value."""
        url = f"http://127.0.0.1:{self.port}/metrics"
        with urllib.request.urlopen(url, timeout=_SECONDS) as answer:
            text = answer.read().decode()
        lines = [line.rpartition(" ") for line in text.splitlines() if line and not line.startswith("#")]
        return {name: float(value) for name, _, value in lines}

    def metric(self, name: str) -> float:
        """Return the value of one metric with its labels, 0 where it is absent."""
        return self.metrics().get(name, 0.0)

    def wait_fresh(self) -> None:
        """Wait until it knows the hub's history up to now."""
        wait_until(
            lambda: (
                "gpuwaste_advisor_history_age_seconds" in self.metrics()
                and not self.metric("gpuwaste_advisor_history_pending")
            ),
            _SECONDS,
            "the advisor to know the history",
            lambda: tail(self.log),
        )

    def _answers_or_ended(self) -> bool:
        assert self.process is not None  # noqa: S101 start sets it
        if self.process.poll() is not None:
            return True
        with contextlib.suppress(OSError, ParseError):
            self.ask({}, op="ping")  # a connection alone is taken in before all else is ready
            return True
        return False


def read_reply(sock: socket.socket) -> dict[str, Any]:
    """Read one reply. Raises ParseError where the other side hangs up before it is whole."""
    data = b""
    while len(data) < HEADER.size or len(data) < HEADER.size + decode_header(data[: HEADER.size], MAX_REPLY):
        part = sock.recv(MAX_REPLY + HEADER.size)
        if not part:
            raise ParseError(f"advice: hung up after {len(data)} bytes")
        data += part
    return decode_reply(data)


def spooled(directory: Path) -> list[dict[str, Any]]:
    """Return the verdicts that an advisor's spool still holds."""
    found = []
    for path in sorted(directory.glob("*.jsonl")):
        found += [json.loads(line) for line in path.read_bytes().splitlines() if line]
    return found


def run_as(uid: int, argv: list[str]) -> subprocess.CompletedProcess[str]:
    """Run a command as another user."""
    return subprocess.run(argv, user=uid, group=uid, capture_output=True, text=True, check=False, env=dict(os.environ))
