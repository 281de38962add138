"""The web server: the Unix socket's peers, TLS, clients that keep a connection busy with nothing."""

import getpass
import socket
from pathlib import Path

import pytest
from tests.integration.hub.rig import Rig, running_hub
from tests.self_signed import self_signed

from gpuwaste.core.errors import ConfigError
from gpuwaste.core.version import own_version
from gpuwaste.hub.protocol import Bounds
from gpuwaste.hub.server import WebServer, open_tcp, open_unix
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.net.hub_client import HubClient
from gpuwaste.testing.hub_rows import record

pytestmark = pytest.mark.sockets


def test_the_unix_socket_knows_its_peer(hub: Rig) -> None:
    """A local user needs no credential: the kernel's word on who he is gives his scope, whatever he claims."""
    me = getpass.getuser()
    upsert_jobs(hub.store, [record(7, me), record(8, "somebody")])
    client = HubClient(f"unix:{hub.socket}")
    assert client.get("/v1/jobs/7")["runs"][0]["user"] == me
    with pytest.raises(Exception, match="not found, or not visible"):
        client.get("/v1/jobs/8")
    assert hub.socket.stat().st_mode & 0o777 == 0o666


def test_tcp_has_no_peer(hub: Rig) -> None:
    """The same question over TCP needs a credential."""
    assert hub.send("GET", "/v1/jobs/7").status == 401


def test_hours_need_a_credential_on_the_unix_socket_too(hub: Rig) -> None:
    """Being local is no proof of being a node's agent."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(str(hub.socket))
        sock.sendall(b"POST /v1/hours HTTP/1.1\r\nHost: hub\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        assert b" 401 " in sock.recv(65536)


def test_a_client_that_never_asks_is_let_go(tmp_path: Path) -> None:
    """A connection without a request, or with half a request's head, is closed after the deadline."""
    with running_hub(tmp_path, bounds=Bounds(header_s=0.2)) as hub:
        for beginning in (b"", b"GET /v1/health HTTP/1.1\r\nHost: "):
            with socket.create_connection(("127.0.0.1", hub.port), 20) as sock:
                sock.sendall(beginning)
                assert sock.recv(100) == b""
        with socket.create_connection(("127.0.0.1", hub.port), 20) as sock:
            sock.sendall(b"GET /v1/health HTTP/1.1\r\nHost: hub\r\n\r\n")
            assert b" 200 " in sock.recv(65536)
            sock.sendall(b"GET /v1/hea")
            while sock.recv(65536):
                pass


def test_tls(tmp_path: Path) -> None:
    """With a certificate the hub speaks TLS, and a client that trusts it reads its health."""
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    self_signed(certificate, key, "IP:127.0.0.1,DNS:localhost")
    with running_hub(tmp_path, tls=(str(certificate), str(key))) as hub:
        assert (
            HubClient(f"https://127.0.0.1:{hub.port}", ca=str(certificate)).get("/v1/health")["version"]
            == own_version()
        )


def test_a_bad_certificate_is_named(hub: Rig, tmp_path: Path) -> None:
    """A certificate that cannot be read stops the start with its path."""
    with open_tcp("127.0.0.1:0") as sock, pytest.raises(ConfigError, match=r"nothing\.pem"):
        WebServer(hub.hub.app, sock, None, (str(tmp_path / "nothing.pem"), "x"))


@pytest.mark.parametrize("listen", ["9461", "127.0.0.1:http", "127.0.0.1:99999", "", "256.1.1.1:80"])
def test_a_bad_address_is_named(listen: str) -> None:
    """An address that cannot be listened on is one line with the key's name."""
    with pytest.raises(ConfigError, match="listen"):
        open_tcp(listen)


def test_an_address_in_use_is_named() -> None:
    """A port that somebody else has is told as such."""
    with open_tcp("127.0.0.1:0") as sock, pytest.raises(ConfigError, match="in use"):
        open_tcp(f"127.0.0.1:{sock.getsockname()[1]}")


def test_a_file_in_the_sockets_place_is_left_alone(tmp_path: Path) -> None:
    """Where something else than a socket is, the hub says so and removes nothing; an old socket is replaced."""
    path = tmp_path / "hub.sock"
    path.write_text("precious")
    with pytest.raises(ConfigError, match="is not a socket"):
        open_unix(path)
    assert path.read_text() == "precious"
    path.unlink()
    open_unix(path).close()
    open_unix(path).close()
    assert path.is_socket()
