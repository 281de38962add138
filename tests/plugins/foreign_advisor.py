"""Serves good replies as another user: `python -m tests.plugins.foreign_advisor UID PATH`, as root.

A program of its own: a fork of a process with threads may hang before it serves anything.
"""

import os
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path

from gpuwaste.advice.submit_frames import encode_reply


def main() -> None:
    """Serve at PATH as UID, each connection with a fresh warning, until killed."""
    uid, path = int(sys.argv[1]), Path(sys.argv[2])
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    os.setuid(uid)
    listener.bind(str(path))
    path.chmod(0o666)
    listener.listen(16)
    while True:
        connection, _ = listener.accept()
        with connection, suppress(OSError):  # the client may hang up before it is answered
            connection.sendall(encode_reply("0123456789abcdef", "warn", ("look",), as_of=int(time.time())))


if __name__ == "__main__":
    main()
