"""A hub that many peers lean on: silent ones, halting ones, ones that do not read, and one who asks without end."""

import contextlib
import pwd
import resource
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.hub.rig import Rig, running_hub
from tests.passable import let_others_through

from gpuwaste.core.scope import Scope
from gpuwaste.hub.protocol import Bounds
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.testing.cluster_process import wait_until
from gpuwaste.testing.hub_rows import record
from gpuwaste.testing.patience import patient

pytestmark = pytest.mark.sockets

WAITING = 40
ASK = b"GET /v1/health HTTP/1.1\r\nHost: hub\r\nConnection: close\r\n\r\n"


@pytest.fixture
def narrow(tmp_path: Path) -> Iterator[Rig]:
    """Run a hub that lets forty connections be silent, and is patient with each."""
    with running_hub(tmp_path, bounds=Bounds(header_s=60, write_s=0.3, waiting=WAITING)) as rig:
        yield rig


def answered(sock: socket.socket) -> bool:
    sock.sendall(ASK)
    return b" 200 " in b"".join(iter(lambda: sock.recv(65536), b""))


@pytest.mark.parametrize(
    "beginning",
    [
        b"",
        b"GET /v1/health HTTP/1.1\r\nHost: ",
        b"POST /v1/hours HTTP/1.1\r\nHost: hub\r\nContent-Length: 900\r\n\r\nx",
    ],
    ids=["silent", "half a head", "half a body"],
)
def test_a_flood_of_silent_connections_pushes_out_its_own(narrow: Rig, beginning: bytes) -> None:
    """Five times as many as may wait, and a request is answered all the while; those that remain are the newest."""
    with contextlib.ExitStack() as stack:
        held = []
        for _ in range(5 * WAITING):
            held.append(stack.enter_context(socket.create_connection(("127.0.0.1", narrow.port), 20)))
            held[-1].sendall(beginning)
        with socket.create_connection(("127.0.0.1", narrow.port), 20) as sock:
            assert answered(sock)
        wait_until(lambda: len(narrow.server.limiter) == WAITING - 1, 60, "the flood to be cut")
        held[0].settimeout(20)
        with contextlib.suppress(ConnectionResetError):
            assert held[0].recv(1) == b""
    wait_until(lambda: len(narrow.server.limiter) == 0, 60, "all to be forgotten")


def test_a_local_user_s_flood_leaves_another_user_s_connection(narrow: Rig) -> None:
    """On the Unix socket peers are users: nobody's silent connections cost root none."""
    narrow.socket.chmod(0o666)
    let_others_through(narrow.socket.parent)
    script = (
        "import socket, sys, os\nos.setuid(int(sys.argv[2]))\nheld = []\n"
        "for _ in range(200):\n s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); held.append(s)\n"
        "print('open', flush=True)\nsys.stdin.read()\n"
    )
    nobody = str(pwd.getpwnam("nobody").pw_uid)
    with socket.socket(socket.AF_UNIX) as mine:
        mine.settimeout(20)
        mine.connect(str(narrow.socket))
        flood = subprocess.Popen(
            [sys.executable, "-c", script, str(narrow.socket), nobody], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        try:
            assert flood.stdout is not None
            assert flood.stdout.readline() == b"open\n"
            wait_until(lambda: len(narrow.server.limiter) == WAITING, 60, "the flood to be cut")
            assert answered(mine)
        finally:
            flood.communicate(timeout=patient(20))


def test_who_does_not_read_his_answer_is_let_go(narrow: Rig) -> None:
    """An answer that nobody takes is dropped with its connection, and what it held is free."""
    upsert_jobs(narrow.store, [record(n, "alice", name="x" * 900) for n in range(1, 12_001)])
    target = "/v1/history?limit=10000"
    head = f"GET {target} HTTP/1.1\r\nHost: hub\r\nAuthorization: {narrow.credential(1004, 'GET', target)}\r\n\r\n"
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.settimeout(20)
        sock.connect(("127.0.0.1", narrow.port))
        sock.sendall(head.encode())

        def reset() -> bool:
            return sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) != 0

        wait_until(reset, 60, "the hub to hang up", poll_s=0.05)


def test_one_user_has_eight_questions_in_work(hub: Rig) -> None:
    """The ninth gets 429 and may come again; others, operators and daemons are not kept waiting by him."""
    upsert_jobs(hub.store, [record(7, "alice"), record(8, "bob")])
    with contextlib.ExitStack() as stack:
        for _ in range(8):
            stack.enter_context(hub.turns.taken(Scope("alice")))
        refused = hub.get(1001, "/v1/jobs/7")
        assert (refused.status, refused.headers["retry-after"]) == (429, "1")
        assert "try again" in refused.json["error"]
        assert hub.get(1001, "/v1/jobs/9").status == 429
        assert hub.get(1002, "/v1/jobs/8").status == 200
        assert hub.get(1004, "/v1/jobs/7").status == 200
    assert hub.get(1001, "/v1/jobs/7").status == 200


def test_room_for_its_connections_is_asked_for() -> None:
    """A hub started with a small limit of open files raises it as far as it may."""
    code = (
        "import resource\nfrom gpuwaste.hub.server import make_room\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (256, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))\n"
        "make_room(); print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    assert int(done.stdout) >= min(8192, hard if hard != resource.RLIM_INFINITY else 8192)
