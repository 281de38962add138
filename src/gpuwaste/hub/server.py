"""The web server: uvicorn on TCP and on a Unix socket in one loop, with deadlines that uvicorn lacks."""

import asyncio
import contextlib
import os
import resource
import signal
import socket
import stat
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, Final, Self

import uvicorn
from starlette.types import ASGIApp

from gpuwaste.core import log_event
from gpuwaste.core.errors import ConfigError
from gpuwaste.core.hub_config import HubConfig
from gpuwaste.core.unix_socket import require_room
from gpuwaste.hub.protocol import BOUNDS, Bounds, HubProtocol
from gpuwaste.net.addresses import parse_listen
from gpuwaste.net.connection_limiter import ConnectionLimiter, LimitedListener, Listener

BEAT_S: Final = 1.0
_STARTING_S: Final = 0.05
DRAIN_S: Final = 20  # for requests in flight at SIGTERM
_KEEP_ALIVE_S: Final = 15
_MAX_CONNECTIONS: Final = 3584
_BACKLOG: Final = 2048  # connections that the kernel keeps for us
_ACCEPTS: Final = 64  # accepted before existing connections are read: a burst must not make requests appear late
FILES: Final = 8192
_STOPS: Final = log_event.info("hub-stops: {signal}: the hub finishes open requests and stops")


class HubSockets:
    """The TCP and the Unix socket, None where not configured; `tls` are the paths of certificate and key.

    The server of a socket closes it at the end.
    """

    def __init__(self, tcp: socket.socket | None, unix: socket.socket | None, tls: tuple[str, str] | None) -> None:
        self.tcp = tcp
        self.unix = unix
        self.tls = tls

    @classmethod
    def open(cls, hub: HubConfig) -> Self:
        """Listen as configured in [hub]. Raises ConfigError."""
        tcp = open_tcp(hub.listen) if hub.listen else None
        unix = open_unix(Path(hub.socket)) if hub.socket else None
        if tcp is None and unix is None:
            raise ConfigError("[hub] listen and socket are both empty: set one of them")
        return cls(tcp, unix, (hub.tls_cert, hub.tls_key) if hub.tls_cert else None)

    def copies(self) -> Self:
        """Return sockets with the same queues of connections: when they are closed, these continue to listen."""
        tcp, unix = (None if sock is None else _copy(sock) for sock in (self.tcp, self.unix))
        return type(self)(tcp, unix, self.tls)

    @property
    def places(self) -> str:
        """Where the hub listens, for the log."""
        return " and ".join(listening(sock) for sock in (self.tcp, self.unix) if sock is not None)


def _copy(sock: socket.socket) -> socket.socket:
    copy = sock.dup()
    if isinstance(copy, Listener) and isinstance(sock, Listener):
        copy.queue = sock.queue
    return copy


class _UvicornServer(uvicorn.Server):
    """A uvicorn server that leaves the signals to `serve`."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Capture none."""
        yield


def open_tcp(listen: str) -> socket.socket:
    """Return a socket that listens on an address (net/addresses.py). Raises ConfigError."""
    address = parse_listen(listen, "hub")
    sock = Listener(address.family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((address.host, address.port))
    except OSError as error:
        sock.close()
        raise ConfigError(f"[hub] listen {listen}: {error.strerror or error}") from error
    sock.listen(_BACKLOG)
    return sock


def open_unix(path: Path) -> socket.socket:
    """Return a socket on which every local user may connect. Raises ConfigError where something else is there."""
    require_room("[hub] socket", path)
    try:
        if stat.S_ISSOCK(path.lstat().st_mode):
            path.unlink()
        else:
            raise ConfigError(f"[hub] socket {path}: exists but is not a socket: remove it or set another path")
    except FileNotFoundError:
        pass
    except OSError as error:
        raise ConfigError(f"[hub] socket {path}: {error.strerror}") from error
    sock = Listener(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.bind(str(path))
        path.chmod(0o666)
    except OSError as error:
        sock.close()
        raise ConfigError(f"[hub] socket {path}: {error.strerror or error}") from error
    sock.listen(_BACKLOG)
    return sock


class WebServer:
    """Serves one application on TCP (with TLS where configured) and on a Unix socket."""

    def __init__(
        self,
        app: ASGIApp,
        tcp: socket.socket | None,
        unix: socket.socket | None = None,
        tls: tuple[str, str] | None = None,
        bounds: Bounds = BOUNDS,
        *,
        drain_s: int = DRAIN_S,
        serves: Callable[[], None] = lambda: None,
        beat: Callable[[], None] = lambda: None,
    ) -> None:
        """Prepare; `tls` are the paths of certificate and key. Raises ConfigError where they cannot be used.

        `serves` is called once, when every socket is served; `beat` by the event loop every BEAT_S. At the end requests
        in flight have `drain_s` to finish.
        """
        self.limiter = ConnectionLimiter(bounds.waiting)
        own: dict[str, Any] = {
            "header_deadline_s": bounds.header_s,
            "write_deadline_s": bounds.write_s,
            "limiter": self.limiter,
        }
        if tcp is not None and tls is not None:
            tcp = own["listener"] = LimitedListener.of(tcp, self.limiter)
        over_tcp = type("HubProtocol", (HubProtocol,), own)
        over_unix = type("HubProtocol", (HubProtocol,), {**own, "listener": None})
        self._serves, self._beat = serves, beat
        self._servers: list[tuple[uvicorn.Server, socket.socket]] = []
        if tcp is not None:
            self._servers.append((_UvicornServer(_config(app, over_tcp, tls, drain_s)), tcp))
        if unix is not None:
            self._servers.append((_UvicornServer(_config(app, over_unix, None, drain_s)), unix))

    def run(self, *, signals: bool = True) -> None:
        """Serve until `stop`, or until SIGTERM or SIGINT; requests in flight are finished first."""
        asyncio.run(self._run(signals=signals))

    def stop(self) -> None:
        """End `run`; any thread may ask."""
        for server, _ in self._servers:
            server.should_exit = True

    async def _run(self, *, signals: bool) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT) if signals else ():
            loop.add_signal_handler(number, self._signalled, number)
        beating = loop.create_task(self._beating())
        try:
            await asyncio.gather(*(server.serve(sockets=[sock]) for server, sock in self._servers))
        finally:
            beating.cancel()

    async def _beating(self) -> None:
        while not all(server.started for server, _ in self._servers):  # noqa: ASYNC110 uvicorn has no event for it
            await asyncio.sleep(_STARTING_S)
        self._serves()
        while True:
            self._beat()
            await asyncio.sleep(BEAT_S)

    def _signalled(self, number: signal.Signals) -> None:
        _STOPS.log(signal=number.name)
        self.stop()


def _config(app: ASGIApp, protocol: type[HubProtocol], tls: tuple[str, str] | None, drain_s: int) -> uvicorn.Config:
    certificate, key = tls or (None, None)
    config = uvicorn.Config(
        app,
        http=protocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        backlog=_ACCEPTS,
        limit_concurrency=_MAX_CONNECTIONS,
        timeout_keep_alive=_KEEP_ALIVE_S,
        timeout_graceful_shutdown=drain_s,
        ssl_certfile=certificate,
        ssl_keyfile=key,
    )
    try:
        config.load()
    except OSError as error:  # ssl.SSLError is one
        raise ConfigError(f"[hub] tls_cert {certificate}, tls_key {key}: cannot be used: {error}") from error
    return config


def make_room() -> None:
    """Raise the limit of open files, as far as allowed, to the need of the connections of two sockets and the store."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES if hard == resource.RLIM_INFINITY else min(FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def listening(sock: socket.socket) -> str:
    """Return where a socket listens, for the log."""
    name = sock.getsockname()
    return os.fsdecode(name) if sock.family == socket.AF_UNIX else f"{name[0]}:{name[1]}"
