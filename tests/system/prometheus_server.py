"""A real Prometheus on a free port, for tests that ask it."""

import contextlib
import json
import shutil
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gpuwaste.testing.cluster_process import tail, wait_until
from gpuwaste.testing.daemon_config import free_port
from gpuwaste.testing.patience import patient


class QueryError(Exception):
    """Prometheus' own words about a question that it refuses."""


@dataclass(frozen=True)
class Prometheus:
    """One running server."""

    url: str
    log: Path

    def is_ready(self) -> bool:
        """Whether it takes questions; until it has read its log it answers with 503."""
        with contextlib.suppress(OSError), urllib.request.urlopen(f"{self.url}/-/ready", timeout=patient(5)):  # noqa: S310 our own
            return True
        return False

    def api(self, path: str, **parameters: str) -> Any:
        """Return the data of an answer. Raises QueryError where it refuses, OSError where it does not answer."""
        url = f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=patient(20)) as answer:  # noqa: S310 our own server
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise QueryError(f"{parameters}: {error.read().decode()}") from error

    def query(self, expression: str) -> list[dict[str, Any]]:
        """Return the series of an expression now. Raises as `api` does."""
        found: list[dict[str, Any]] = self.api("query", query=expression)["result"]
        return found

    def wait_for(self, expression: str, what: str, timeout_s: float = 60) -> None:
        """Wait until an expression has a series."""
        wait_until(lambda: bool(self.query(expression)), timeout_s, what, lambda: tail(self.log), poll_s=0.5)


@contextlib.contextmanager
def running(config: Path) -> Iterator[Prometheus]:
    """Run Prometheus on a configuration that promtool takes; its data lie beside it."""
    if shutil.which("prometheus") is None:
        pytest.skip("no prometheus is installed")
    subprocess.run(["promtool", "check", "config", str(config)], check=True, capture_output=True)
    address, log_path = f"127.0.0.1:{free_port()}", config.parent / "prometheus.log"
    command = ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={config.parent / 'tsdb'}"]
    with log_path.open("wb") as log:
        process = subprocess.Popen([*command, f"--web.listen-address={address}"], stdout=log, stderr=log)
    server = Prometheus(f"http://{address}", log_path)
    try:
        wait_until(server.is_ready, 60, "Prometheus to be ready", lambda: tail(log_path), poll_s=0.2)
        yield server
    finally:
        process.terminate()
        process.wait(30)
