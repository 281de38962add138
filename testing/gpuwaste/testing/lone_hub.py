"""A hub of its own process with a munged of its own and no Slurm: for crash tests and for the figure of ingest."""

import contextlib
import getpass
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpuwaste.core.errors import WireError
from gpuwaste.net.hub_client import HubClient
from gpuwaste.net.munge_credentials import Munge, MungeIssuer
from gpuwaste.testing.cluster_process import tail, wait_until
from gpuwaste.testing.daemon_config import free_port, to_toml
from gpuwaste.testing.own_port import start_on_port
from gpuwaste.testing.patience import patient
from gpuwaste.testing.process_memory import peak_rss_b


def munged_path() -> str | None:
    """Return where munged is installed, None where it is not."""
    return shutil.which("munged", path=f"{os.environ.get('PATH', '')}:/usr/sbin")


@contextlib.contextmanager
def private_munged(origin: str = "127.0.0.1") -> Iterator[str]:
    """Run a munged with a key of its own; gives its socket. munged refuses directories that others may change."""
    base = Path(tempfile.mkdtemp(prefix="gwmunge-", dir="/tmp"))
    base.chmod(0o711)
    key = base / "key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o400)
    files = {"socket": "sock", "pid-file": "pid", "log-file": "log", "seed-file": "seed", "key-file": "key"}
    command = [
        str(munged_path()),
        "--foreground",
        f"--origin={origin}",
        *(f"--{o}={base / f}" for o, f in files.items()),
    ]
    with (base / "out").open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out)
    try:
        wait_until(
            lambda: (base / "sock").exists() or process.poll() is not None, 20, "munged", lambda: tail(base / "out")
        )
        yield str(base / "sock")
    finally:
        process.terminate()
        process.wait(10)
        shutil.rmtree(base, ignore_errors=True)


@dataclass
class LoneHub:
    """One hub on one store; may be killed and started again. `hub`, `common` and `models` are keys of its file."""

    directory: Path
    munge_socket: str = ""
    hub: Mapping[str, Any] = field(default_factory=dict)
    common: Mapping[str, Any] = field(default_factory=dict)
    models: Mapping[str, Any] = field(default_factory=dict)
    port: int = 0
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def log(self) -> Path:
        """What it says."""
        return self.directory / "hub.log"

    def client(self) -> HubClient:
        """Return a client as this process' user, who is the agents' user here."""
        return HubClient(self.url, MungeIssuer(Munge(self.munge_socket), hub_uid=os.geteuid()))

    def start(self) -> None:
        """Start it and wait until it answers; where somebody took its port in between, on another one."""
        start_on_port(self, self._start)

    def stand_by(self) -> None:
        """Start it where another one runs on its lake, and wait until it answers reads."""
        said = self.words("hub-answers-reads:")
        self._launch()
        wait_until(lambda: self.words("hub-answers-reads:") > said, 120, "the hub to stand by", lambda: tail(self.log))

    def words(self, words: str) -> int:
        """Return how often the log has these words."""
        return self.log.read_text(encoding="utf-8").count(words) if self.log.exists() else 0

    def serves(self) -> bool:
        """Tell whether it is the hub that serves."""
        with contextlib.suppress(WireError):
            return bool(HubClient(self.url, timeout_s=5).get("/v1/health")["role"] == "serves")
        return False

    def listens(self) -> bool:
        """Tell whether it listens."""
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
            return True
        return False

    def _start(self) -> None:
        self._launch()
        wait_until(self._listens_or_ended, 120, "the hub", lambda: tail(self.log), poll_s=0.05)

    def _launch(self) -> None:
        self.port = self.port or free_port()
        config = self.directory / "gpuwaste.toml"
        own = {
            "listen": f"127.0.0.1:{self.port}",
            "state_dir": str(self.directory / "state"),
            "agent_user": getpass.getuser(),
            "check_origin": False,
            "unaccounted_days": 0,  # no Slurm, no accounting: of no run is there any
            **self.hub,
        }
        common = {
            "cluster": "gw",
            "munge_socket": self.munge_socket,
            "slurm_conf": str(self.directory / "slurm.conf"),
            **self.common,
        }
        config.write_text(to_toml({"common": common, "models": self.models, "hub": own}), encoding="utf-8")
        # A file that Slurm's commands refuse at once; without one they look for a controller in the network.
        (self.directory / "slurm.conf").write_text("this is no slurm.conf\n", encoding="ascii")
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "gpuwaste.cli", "hub", "run", "--config", str(config)],
                stdout=log,
                stderr=log,
            )

    def kill(self, number: signal.Signals = signal.SIGKILL) -> int:
        """End it at once, or as the signal does; returns its exit code."""
        assert self.process is not None  # noqa: S101 a caller's mistake
        self.process.send_signal(number)
        return self.process.wait(60)

    def stop(self) -> None:
        """End it in order, where it runs."""
        if self.process is not None and self.process.poll() is None:
            self.kill(signal.SIGTERM)

    def peak_rss_b(self) -> int:
        """Return the most memory that it has used, bytes."""
        assert self.process is not None  # noqa: S101 a caller's mistake
        return peak_rss_b(self.process.pid)

    def cpu_s(self) -> float:
        """Return the CPU seconds that it has used."""
        assert self.process is not None  # noqa: S101 a caller's mistake
        stat = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="ascii", errors="replace")
        user, system = stat.rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def metric(self, name: str) -> float:
        """Return the value of one of its series without labels."""
        with urllib.request.urlopen(f"{self.url}/metrics", timeout=patient(60)) as answer:  # noqa: S310 our own hub
            lines = answer.read().decode().splitlines()
        return next(float(line.split()[1]) for line in lines if line.startswith(f"{name} "))

    def _listens_or_ended(self) -> bool:
        assert self.process is not None  # noqa: S101 start sets it
        return self.process.poll() is not None or self.listens()
