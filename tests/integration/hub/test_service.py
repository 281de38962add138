"""The hub under systemd's eyes: ready when it answers, alive while it works, silent while it stands still."""

import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.notify_socket import notify_socket, said

from gpuwaste.net.hub_client import HubClient
from gpuwaste.testing.cluster_process import wait_until
from gpuwaste.testing.lone_hub import LoneHub, munged_path, private_munged

pytestmark = [
    pytest.mark.sockets,
    pytest.mark.skipif(munged_path() is None, reason="munged is not installed (Debian: munge)"),
]
WATCHDOG_US = 400_000


@pytest.fixture
def listener(tmp_path: Path) -> Iterator[socket.socket]:
    with notify_socket(tmp_path, 60) as sock:
        yield sock


@pytest.mark.long
def test_ready_signs_of_life_and_the_end(
    tmp_path: Path, listener: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """READY=1 when the hub answers; nothing from a stopped process; SIGHUP reads the configuration; STOPPING=1."""
    monkeypatch.setenv("NOTIFY_SOCKET", listener.getsockname())
    monkeypatch.setenv("WATCHDOG_USEC", str(WATCHDOG_US))
    with private_munged() as munge:
        hub = LoneHub(tmp_path, munge)
        hub.start()
        try:
            assert listener.recv(4096).decode() == f"READY=1\nSTATUS=store {tmp_path}/state"
            assert HubClient(hub.url).get("/v1/health")["version"]
            assert listener.recv(4096) == b"WATCHDOG=1"
            assert hub.process is not None
            hub.process.send_signal(signal.SIGSTOP)
            _until_stopped(hub.process.pid)
            said(listener)
            time.sleep(
                3 * WATCHDOG_US / 1e6
            )  # three times as long as systemd would wait; a stopped process cannot send
            assert said(listener) == []
            hub.process.send_signal(signal.SIGCONT)
            assert listener.recv(4096) == b"WATCHDOG=1"
            with (tmp_path / "gpuwaste.toml").open("a", encoding="utf-8") as config:
                config.write('staff_groups = ["hpc"]\nsocket = "/elsewhere"\n')
            hub.process.send_signal(signal.SIGHUP)
            words = "configuration: reloaded: hub.staff_groups; needs a restart: hub.socket"
            wait_until(lambda: words in hub.log.read_text(encoding="utf-8"), 60, "the configuration to be read again")
        finally:
            hub.stop()
        assert "STOPPING=1\nSTATUS=stopping" in said(listener)


def _until_stopped(pid: int) -> None:
    while Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] != "T":
        time.sleep(0.01)
