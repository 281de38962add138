"""Unix sockets: the kernel's limit of a path's length, and a connection that waits in the listener's queue."""

import math
import os
import socket
import struct
from pathlib import Path
from typing import Final

from gpuwaste.core.errors import ConfigError

MAX_BYTES: Final = 107


def require_room(key: str, path: str | Path) -> None:
    """Raise ConfigError where a path is too long for a Unix socket; `key` is the setting it derives from."""
    if (size := len(os.fsencode(path))) > MAX_BYTES:
        raise ConfigError(
            f"{key} {path}: {size} bytes, but the path of a Unix socket has at most {MAX_BYTES}: set a shorter one"
        )


def connect_unix(path: str | Path, timeout_s: float) -> socket.socket:
    """Return a connection with a timeout of `timeout_s` seconds per operation. Raises OSError.

    A socket with Python's timeout does not block, so connect(2) fails with EAGAIN at once where the listener's queue is
    full. A blocking one waits for SO_SNDTIMEO (socket(7)).
    """
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        fraction, seconds = math.modf(timeout_s)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", int(seconds), int(fraction * 1e6)))
        sock.connect(os.fspath(path))
        sock.settimeout(timeout_s)
    except OSError:
        sock.close()
        raise
    return sock
