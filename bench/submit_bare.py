"""An advisor that does nothing but answer, for bench/submit.py: accept, read, send, close."""

import socket
import sys
import time
from pathlib import Path

from gpuwaste.advice.submit_frames import encode_reply


def main() -> None:
    """Answer until killed."""
    path = Path(sys.argv[1])
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen(256)
    path.with_suffix(".ready").touch()
    frame = encode_reply("0" * 16, "pass", as_of=int(time.time()))
    while True:
        link, _ = listener.accept()
        link.recv(65536)
        link.sendall(frame)
        link.close()


if __name__ == "__main__":
    main()
