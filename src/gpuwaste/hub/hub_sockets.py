"""HubSockets: where the hub listens: opened once, for a hub that stands by and then for the one that it becomes."""

import socket
from pathlib import Path
from typing import Self

from gpuwaste.core.errors import ConfigError
from gpuwaste.core.hub_config import HubConfig
from gpuwaste.hub.server import listening, open_tcp, open_unix
from gpuwaste.net.connection_limiter import Listener


class HubSockets:
    """The TCP and the Unix socket, None where not configured; `tls` are the paths of certificate and key.

    Who serves a socket closes it at the end.
    """

    def __init__(self, tcp: socket.socket | None, unix: socket.socket | None, tls: tuple[str, str] | None) -> None:
        self.tcp = tcp
        self.unix = unix
        self.tls = tls

    @classmethod
    def open(cls, hub: HubConfig) -> Self:
        """Listen as [hub] says. Raises ConfigError."""
        tcp = open_tcp(hub.listen) if hub.listen else None
        unix = open_unix(Path(hub.socket)) if hub.socket else None
        if tcp is None and unix is None:
            raise ConfigError("[hub] listen and socket are both empty: set one of them")
        return cls(tcp, unix, (hub.tls_cert, hub.tls_key) if hub.tls_cert else None)

    def copies(self) -> Self:
        """Return sockets with the same queues of connections: when they are closed, these here go on to listen."""
        tcp, unix = (None if sock is None else _copy(sock) for sock in (self.tcp, self.unix))
        return type(self)(tcp, unix, self.tls)

    @property
    def places(self) -> str:
        """Where it listens, for the log."""
        return " and ".join(listening(sock) for sock in (self.tcp, self.unix) if sock is not None)


def _copy(sock: socket.socket) -> socket.socket:
    copy = sock.dup()
    if isinstance(copy, Listener) and isinstance(sock, Listener):
        copy.queue = sock.queue
    return copy
