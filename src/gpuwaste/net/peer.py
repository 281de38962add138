"""Who is at the other end of a Unix socket, as the kernel tells it."""

import socket
import struct
from typing import Any, Final

_CREDENTIALS: Final = struct.Struct("3i")  # pid, uid, gid of SO_PEERCRED


def peer_of(sock: Any) -> tuple[int, int]:
    """Return the pid and the uid of the process at the other end, as they were when it connected or listened."""
    pid, uid, _ = _CREDENTIALS.unpack(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    return pid, uid


def peer_uid(sock: Any) -> int | None:
    """Return the uid at the other end of a Unix socket, None for any other."""
    if sock is None or sock.family != socket.AF_UNIX:
        return None
    return peer_of(sock)[1]
