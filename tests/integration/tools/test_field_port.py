"""Questions to the field's virtual machine: the program that answers them there, and who asks it here."""

import json
import os
import socket
import subprocess
import sys
import threading
import tty
from pathlib import Path

import pytest
from tools.field.vm import port

from gpuwaste.core.errors import GpuwasteError

_GUEST = Path(port.__file__).with_name("guest") / "port.py"


def _asked(master: int, *lines: bytes) -> dict[str, object]:
    for line in lines:
        os.write(master, line)
    got = b""
    while not got.endswith(b"\n"):
        got += os.read(master, 1 << 16)
    found: dict[str, object] = json.loads(got)
    return found


def test_program_in_the_machine_answers_each_request() -> None:
    """It runs a command and tells outputs and status; a line that is no request, or cut in two, does no harm."""
    master, slave = os.openpty()
    tty.setraw(slave)
    with subprocess.Popen([sys.executable, "-IB", str(_GUEST), os.ttyname(slave)]) as program:
        try:
            script = "echo out; echo err >&2; exit 3"
            request = json.dumps({"id": 7, "argv": ["sh", "-c", script]}).encode() + b"\n"
            answer = _asked(master, b"nonsense\n{}\n", request[:9], request[9:])
            assert answer == {"id": 7, "returncode": 3, "stdout": "out\n", "stderr": "err\n"}
            missing = _asked(master, b'{"id": 8, "argv": ["/no/such/program"]}\n')
            assert (missing["id"], missing["returncode"]) == (8, 127)
            left = _asked(master, b'{"id": 9, "argv": ["sh", "-c", "sleep 60 & echo $!"]}\n')
            os.kill(int(str(left["stdout"])), 9)
        finally:
            program.kill()
    os.close(master)
    os.close(slave)


def _serve(listener: socket.socket, replies: list[bytes]) -> None:
    """Answer one request: each reply with the request's id in place of ID; then close."""
    peer, _ = listener.accept()
    with peer:
        request = json.loads(peer.makefile("rb").readline())
        for reply in replies:
            peer.sendall(reply.replace(b"ID", str(request["id"]).encode()))


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # a socket's path has at most 107 bytes, a folder of tests may have more


def _ask(replies: list[bytes]) -> subprocess.CompletedProcess[str]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind("port")
        listener.listen()
        server = threading.Thread(target=_serve, args=(listener, replies))
        server.start()
        try:
            return port.ask(Path("port"), ["true"], 1)
        finally:
            server.join()


def test_answer_to_an_older_request_is_none() -> None:
    """What a request that was given up is answered later is passed over, and so is a line that is no answer."""
    other = b'{"id": 1, "returncode": 1, "stdout": "old", "stderr": ""}\nlogin:\n[]\n'
    own = b'{"id": ID, "returncode": 0, "stdout": "new", "stderr": ""}\n'
    assert _ask([other, own[:20], own[20:]]).stdout == "new"


def test_machine_that_ends_meanwhile_is_told() -> None:
    """A port that closes, or that nobody serves, is one clear line."""
    with pytest.raises(GpuwasteError, match="closed: has the virtual machine ended"):
        _ask([b""])
    with pytest.raises(GpuwasteError, match=r"nothing-here: .*has the virtual machine ended"):
        port.ask(Path("nothing-here"), ["true"], 1)
