"""Whose socket the other end of a connection is, with real sockets of this host."""

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from gpuwaste.net.addresses import is_loopback_address
from gpuwaste.net.peers import ends_of, is_own_address, uid_at_other_end

CONNECT = """
import socket, sys
with socket.create_connection((sys.argv[1], int(sys.argv[2]))) as sock:
    print(sock.getsockname()[1], flush=True)
    sys.stdin.read()
"""


@contextmanager
def served(family: socket.AddressFamily, address: str, to: str, user: int | None = None) -> Iterator[socket.socket]:
    """Yield a server's end of a connection that a process of a user keeps open."""
    with socket.create_server((address, 0), family=family, dualstack_ipv6=address == "::") as listener:
        argv = [
            shutil.which("python3", path="/usr/bin") or sys.executable,
            "-IS",
            "-c",
            CONNECT,
            to,
            str(listener.getsockname()[1]),
        ]
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, user=user, cwd="/") as process:
            server, _ = listener.accept()
            with server:
                yield server
            assert process.stdin is not None
            process.stdin.close()


@pytest.mark.parametrize(
    ("family", "address", "to"),
    [
        (socket.AF_INET, "127.0.0.1", "127.0.0.1"),
        (socket.AF_INET, "0.0.0.0", "127.0.1.1"),  # noqa: S104 until the end of the test
        (socket.AF_INET6, "::1", "::1"),
        (socket.AF_INET6, "::", "127.0.0.1"),
    ],
)
def test_the_user_of_a_local_process_is_found(family: socket.AddressFamily, address: str, to: str) -> None:
    """By IPv4, by IPv6 and by IPv4 to a socket of IPv6 it is the user of the process that connected."""
    user = 65534 if os.geteuid() == 0 else None
    with served(family, address, to, user) as server:
        ends = ends_of(server)
        assert ends is not None
        assert uid_at_other_end(ends) == (os.geteuid() if user is None else user)


def test_what_is_not_on_this_host_has_no_user() -> None:
    """An address of another host, a port without a socket and an end that is closed are nobody's."""
    with served(socket.AF_INET, "127.0.0.1", "127.0.0.1") as server:
        ends = ends_of(server)
        assert ends is not None
        ours, (there, port) = ends
        assert uid_at_other_end((ours, ("192.0.2.77", port))) is None
        assert uid_at_other_end((ours, (there, port ^ 1))) is None
    assert ends_of(server) is None
    with socket.socket(socket.AF_UNIX) as other:
        assert ends_of(other) is None


@pytest.mark.parametrize(("address", "own"), [("127.0.0.1", True), ("198.51.100.1", False), ("x", False)])
def test_own_addresses(address: str, own: bool) -> None:
    """An address is this host's where the kernel would send from it; words that are no address are not."""
    assert is_own_address(address) is own
    assert is_loopback_address(address) is address.startswith("127.")
