"""The control socket answers its owner and survives everybody else."""

import json
import os
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.passable import let_others_through

from gpuwaste.agent.control_socket import SOCKET_NAME, ControlServer, ask_agent, release_seconds
from gpuwaste.core.config import Config
from gpuwaste.core.errors import NoDataError, UsageError
from gpuwaste.core.site_config import CommonConfig
from gpuwaste.core.unix_socket import connect_unix

pytestmark = pytest.mark.sockets


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return Config(common=replace(CommonConfig(), run_dir=str(tmp_path)))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Path]:
    """Run a server with two commands and return its socket."""

    def release(request: dict[str, object]) -> dict[str, object]:
        return {"for_s": release_seconds(request)}

    control = ControlServer(tmp_path, {"status": lambda _: {"node": "gpu1"}, "release": release})
    control.start()
    yield tmp_path / SOCKET_NAME
    control.stop()
    assert not (tmp_path / SOCKET_NAME).exists()


def connect(path: Path) -> socket.socket:
    return connect_unix(path, 20)


def test_commands_are_answered(server: Path, config: Config) -> None:
    """A request by name gets that command's answer, line by line; the socket is the owner's and the group's."""
    assert ask_agent(config, {"command": "status"}) == "node: gpu1\n"
    assert ask_agent(config, {"command": "release", "seconds": 120}) == "for_s: 120.0\n"
    assert stat.S_IMODE(server.stat().st_mode) == 0o660


@pytest.mark.parametrize("seconds", [None, "120", True, -1, 1e9, float("nan")])
def test_an_impossible_release_is_refused(server: Path, config: Config, seconds: object) -> None:
    """Seconds that are no number from 0 to a day are refused in words."""
    with pytest.raises(UsageError, match="seconds"):
        ask_agent(config, {"command": "release", "seconds": seconds})


def test_no_agent_is_said(config: Config) -> None:
    """Without an agent the command names the socket that it looked for."""
    with pytest.raises(NoDataError, match=r"agent\.sock: the agent does not answer"):
        ask_agent(config, {"command": "status"})


@pytest.mark.parametrize("garbage", [b"\n", b"\xff\xfe\n", b"[]\n", b'{"command": 5}\n', b"x" * 100_000, b"[" * 4096])
def test_garbage_gets_an_error(server: Path, config: Config, garbage: bytes) -> None:
    """Whatever is sent gets one line with an error, or the end of the connection, and the next request an answer."""
    with connect(server) as client:
        try:
            client.sendall(garbage)
            answer = client.recv(65536)
        except (BrokenPipeError, ConnectionResetError):
            answer = b""
    assert not answer or "error" in json.loads(answer)
    assert ask_agent(config, {"command": "status"})


def test_a_hundred_silent_clients_do_not_block_it(server: Path, config: Config) -> None:
    """A hundred connections that never send a request leave the commands working."""
    clients = [connect(server) for _ in range(100)]
    try:
        assert ask_agent(config, {"command": "status"}) == "node: gpu1\n"
    finally:
        for client in clients:
            client.close()


def test_another_user_is_refused(server: Path, config: Config) -> None:
    """A user who is neither root nor the agent's own gets an error, even where the file would let him in."""
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    server.chmod(0o666)
    let_others_through(server.parent)
    script = (
        "import os, socket, sys; os.setuid(65534); s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]);"
        's.sendall(b\'{"command": "status"}\\n\'); print(s.recv(4096).decode())'
    )
    done = subprocess.run([sys.executable, "-c", script, str(server)], capture_output=True, text=True, check=True)
    assert "only root" in json.loads(done.stdout)["error"]
