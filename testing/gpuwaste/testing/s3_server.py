"""An S3 service on loopback, moto's server in a process of its own: what is stored is gone with it."""

import signal
import socket
import ssl
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.request import Request, urlopen

from gpuwaste.testing.cluster_process import tail, wait_until
from gpuwaste.testing.daemon_config import free_port
from gpuwaste.testing.frameworks import framework_python
from gpuwaste.testing.own_port import start_on_port

_START_S: Final = 60.0


def missing() -> str:
    """Return why no server can be started here, empty where one can."""
    return "" if framework_python("s3") else "no GPUWASTE_S3_PYTHON: a Python with moto[s3] (make frameworks)"


@dataclass
class S3Server:
    """One server, with TLS where it has a certificate, which has its key beside it; `log` has its words."""

    directory: Path
    certificate: Path | None = None
    port: int = 0
    process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> Path:
        """Its log."""
        return self.directory / "s3.log"

    @property
    def endpoint(self) -> str:
        """Its URL."""
        return f"{'https' if self.certificate else 'http'}://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it, empty, and wait until it answers."""
        start_on_port(self, self._start)

    def make_bucket(self, name: str) -> None:
        """Make a bucket."""
        tls = ssl.create_default_context(cafile=str(self.certificate)) if self.certificate else None
        request = Request(f"{self.endpoint}/{name}", method="PUT")  # noqa: S310 a loopback address of our own
        urlopen(request, timeout=_START_S, context=tls).close()  # noqa: S310

    @contextmanager
    def hanging(self) -> Iterator[None]:
        """Let it answer nothing for the length of the block."""
        self._signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._signal(signal.SIGCONT)

    def kill(self) -> None:
        """End it."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def _signal(self, number: int) -> None:
        if self.process is not None:
            self.process.send_signal(number)

    def _start(self) -> None:
        self.port = self.port or free_port()
        argv = [framework_python("s3") or "", "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)]
        if self.certificate:
            argv += ["-s", "-c", str(self.certificate), "-k", str(self.certificate.with_suffix(".key"))]
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(argv, stdout=output, stderr=output, stdin=subprocess.DEVNULL)
        wait_until(self._answers_or_ended, _START_S, "the S3 server", lambda: tail(self.log))

    def _answers_or_ended(self) -> bool:
        if self.process is None or self.process.poll() is not None:
            return True
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
            return True
        return False


@contextmanager
def s3_server(certificate: Path | None = None) -> Iterator[S3Server]:
    """Run a server for the length of the block."""
    with tempfile.TemporaryDirectory(prefix="gws3") as directory:
        server = S3Server(Path(directory), certificate)
        try:
            server.start()
            yield server
        finally:
            server.kill()
