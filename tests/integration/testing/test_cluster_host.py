"""What a loopback cluster asks of its host."""

import socket
from pathlib import Path

import pytest

from gpuwaste.testing.cluster_host import Ports, accepts, missing

pytestmark = pytest.mark.sockets


def test_why_no_cluster_can_run_here_is_one_line(tmp_path: Path) -> None:
    """A user without root is told so; root without the packages is told the commands and what installs them."""
    assert "needs root" in (missing(uid=1000) or "")
    reason = missing(path=str(tmp_path), uid=0) or ""
    assert reason.startswith("not installed: munged, ")
    assert "tools/install-debian-packages" in reason
    assert "\n" not in reason


def test_ports_are_held_until_their_daemon_starts() -> None:
    """A drawn port is refused to others until it is released, and none is drawn twice."""
    ports = Ports(4)
    first = ports.numbers[0]
    assert len(set(ports.numbers)) == 4
    with socket.socket() as other:
        with pytest.raises(OSError, match="in use"):
            other.bind(("", first))
        ports.release(first)
        other.bind(("", first))
    ports.close()


def test_a_socket_that_nobody_listens_on_accepts_nothing(tmp_path: Path) -> None:
    """Readiness means that a connection is taken, not that a path is there."""
    path = str(tmp_path / "s")
    assert not accepts(path)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        assert not accepts(path)
        server.listen()
        assert accepts(path)
