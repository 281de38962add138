"""SlowLink: a loopback port that leads to a server's Unix socket, as over a distance: each byte arrives later.

with SlowLink(postgres.socket, 0.025) as link:
    ...  # connect to 127.0.0.1, link.port: an exchange takes 50 ms and its own time
"""

import contextlib
import socket
import threading
import time
from pathlib import Path
from queue import SimpleQueue
from typing import Final

from gpuwaste.testing.loopback_port import LoopbackPort, shut

_MOST_B: Final = 1 << 16


class SlowLink(LoopbackPort):
    """Forwards connections; bytes take `delay_s` in each direction, however many are on their way."""

    def __init__(self, target: Path, delay_s: float) -> None:
        super().__init__("slow link")
        self._target = str(target)
        self._delay_s = delay_s
        self.exchanges = 0
        """How often the clients sent something: of a protocol of question and answer the round trips."""

    def _serve(self, client: socket.socket) -> None:
        """Forward both directions until one side ends, or the link does."""
        server = socket.socket(socket.AF_UNIX)
        for connection in (client, server):
            self._enter(connection)
        with contextlib.suppress(OSError):
            server.connect(self._target)
            for part in (self._forward(client, server, counted=True), self._forward(server, client, counted=False)):
                part.join()
        self._leave(client, server)

    def _forward(self, source: socket.socket, target: socket.socket, *, counted: bool) -> threading.Thread:
        """Return the thread that sends on what another one receives and dates."""
        waiting: SimpleQueue[tuple[float, bytes]] = SimpleQueue()

        def receive() -> None:
            data = b"-"
            while data:
                try:
                    data = source.recv(_MOST_B)
                except OSError:
                    data = b""
                if counted and data:
                    with self._lock:
                        self.exchanges += 1
                waiting.put((time.monotonic() + self._delay_s, data))

        def send() -> None:
            while True:
                due, data = waiting.get()
                time.sleep(max(0.0, due - time.monotonic()))
                if not data:
                    with contextlib.suppress(OSError):
                        target.shutdown(socket.SHUT_WR)
                    return
                try:
                    target.sendall(data)
                except OSError:
                    shut(source)

        threading.Thread(target=receive, daemon=True).start()
        sender = threading.Thread(target=send, daemon=True)
        sender.start()
        return sender
