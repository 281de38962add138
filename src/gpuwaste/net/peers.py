"""The user at the other end of a connection, from the kernel: of a Unix socket, or of TCP from this host.

The other end of a TCP connection is in the table of this network namespace only where it is a socket of this host.
Format: proc_net_tcp.rst of the Linux kernel.
"""

import ipaddress
import socket
import struct
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

Ends = tuple[tuple[str, int], tuple[str, int]]
"""Address and port of our end, then of the other one."""
_TABLES: Final = (Path("/proc/self/net/tcp"), Path("/proc/self/net/tcp6"))
_ESTABLISHED: Final = "01"
_MOST_LINES: Final = 1_000_000
_WORD: Final = 4
_DISCARD_PORT: Final = 9
_CREDENTIALS: Final = struct.Struct("3i")  # pid, uid, gid of SO_PEERCRED


def peer_of(sock: Any) -> tuple[int, int]:
    """Return the pid and the uid of the process at the other end, at the time when it connected or listened."""
    pid, uid, _ = _CREDENTIALS.unpack(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    return pid, uid


def peer_uid(sock: Any) -> int | None:
    """Return the uid at the other end of a Unix socket, None for any other."""
    if sock is None or sock.family != socket.AF_UNIX:
        return None
    return peer_of(sock)[1]


def ends_of(sock: Any) -> Ends | None:
    """Return the ends of a TCP connection, None for any other socket and for a closed one."""
    if sock is None or sock.family not in {socket.AF_INET, socket.AF_INET6}:
        return None
    try:
        ours, theirs = sock.getsockname(), sock.getpeername()
    except OSError:
        return None
    return (ours[0], ours[1]), (theirs[0], theirs[1])


def uid_at_other_end(ends: Ends) -> int | None:
    """Return the uid that owns the socket at the other end; None where it is on another host or no longer open.

    For a process that forwards requests of others, such as a proxy, it is the proxy's.
    """
    ours, theirs = ends
    wanted = {(there, here) for there, here in zip(_forms(*theirs), _forms(*ours), strict=False)}
    for words in _lines():
        if (words[1], words[2]) in wanted and words[3] == _ESTABLISHED:
            return int(words[7])
    return None


def is_own_address(address: str) -> bool:
    """Return whether an IPv4 address is one of this host's: packets sent there would also have it as source."""
    try:
        wanted = str(ipaddress.IPv4Address(address))
        with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as sock:
            sock.connect((wanted, _DISCARD_PORT))  # sends nothing
            return bool(sock.getsockname()[0] == wanted)
    except (OSError, ValueError):
        return False


def _lines() -> Iterator[list[str]]:
    for table in _TABLES:
        try:
            with table.open(encoding="ascii", errors="replace") as lines:
                next(lines, "")
                for _, line in zip(range(_MOST_LINES), lines, strict=False):
                    yield line.split()
        except OSError:
            continue


def _forms(address: str, port: int) -> list[str]:
    """Return how the kernel prints an end: as IPv4, and as IPv4 within IPv6; for IPv6 the one form."""
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
        found = found.ipv4_mapped
    if isinstance(found, ipaddress.IPv4Address):
        return [_hex(found.packed, port), _hex(ipaddress.IPv6Address(f"::ffff:{found}").packed, port)]
    return [_hex(found.packed, port)]


def _hex(packed: bytes, port: int) -> str:
    words = [packed[at : at + _WORD] for at in range(0, len(packed), _WORD)]
    if sys.byteorder == "little":
        words = [word[::-1] for word in words]
    return f"{b''.join(words).hex().upper()}:{port:04X}"
