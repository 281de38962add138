"""/metrics over HTTP or HTTPS, on its own threads, with an optional bearer token, and the metrics of every daemon.

The common metrics (version, start, clock, space for its state) do not carry the daemon's name, so that one rule covers
all daemons; Prometheus' own `job` and `instance` identify them.
"""

import hmac
import io
import shutil
import socket
import ssl
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, Final

from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector, CollectorRegistry

from gpuwaste.core.act_config import ActorConfig
from gpuwaste.core.advice_config import AdvisorConfig
from gpuwaste.core.errors import ConfigError
from gpuwaste.core.files import read_closed
from gpuwaste.core.parts import Part
from gpuwaste.net.addresses import parse_listen
from gpuwaste.net.request_server import Request, RequestLimits, RequestServer

_LIMITS: Final = RequestLimits(end=b"\r\n\r\n", most=16 * 1024, deadline_s=10.0)
_TOO_LARGE: Final = b"HTTP/1.0 431 Request Header Fields Too Large\r\nConnection: close\r\n\r\n"
_MAX_TOKEN: Final = 4096  # bytes of the token's file
_BUILD: Final = ("gpuwaste_build_info", "The running version of gpuwaste; always 1.")
_START: Final = ("gpuwaste_start_time_seconds", "When the daemon started, in seconds since the epoch.")
_CLOCK: Final = ("gpuwaste_clock_seconds", "This host's time at the scrape, in seconds since the epoch.")
_FREE: Final = ("gpuwaste_state_free_bytes", "Free space on the file system of state_dir.")
_SIZE: Final = ("gpuwaste_state_size_bytes", "Size of the file system of state_dir.")


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer on a separate path."""

    status: HTTPStatus
    body: bytes
    headers: tuple[tuple[str, str], ...]


Answers = Mapping[str, Callable[[str, str], Reply]]
"""Functions by path; each makes the answer from the target and the Authorization header."""


class MetricsServer:
    """Serves a registry for the daemon of a section of gpuwaste.toml.

    Raises ConfigError where the address, the certificate or the token cannot be used.
    """

    def __init__(
        self,
        listen: str,
        registry: CollectorRegistry,
        *,
        section: str,
        tls_cert: str = "",
        tls_key: str = "",
        token_file: str = "",
        answers: Answers | None = None,
    ) -> None:
        """`answers` are paths in addition to /metrics; they check the caller themselves."""
        token = server_token(token_file, section) if token_file else b""
        context = server_tls(tls_cert, tls_key, section) if tls_cert else None
        address = parse_listen(listen, section)
        try:
            listener = socket.socket(address.family)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((address.host, address.port))
            listener.listen()
        except OSError as error:
            raise ConfigError(f"[{section}] listen: {listen}: {error}") from error
        self._server = RequestServer("exporter", listener, _answerer(registry, token, answers or {}), _LIMITS, context)

    @property
    def port(self) -> int:
        """The port on which it listens."""
        return int(self._server.address[1])

    def start(self) -> None:
        """Start to answer."""
        self._server.start()

    def stop(self) -> None:
        """Stop to answer."""
        self._server.stop()


def exporter(settings: AdvisorConfig | ActorConfig, registry: CollectorRegistry, section: str) -> MetricsServer | None:
    """Return the server of a registry as configured in a section, None where the section has no address."""
    if not settings.listen:
        return None
    return MetricsServer(
        settings.listen, registry, section=section, tls_cert=settings.tls_cert, tls_key=settings.tls_key
    )


class ExporterPart(Part):
    """A daemon's metrics server, None where its section has no address."""

    def __init__(self, server: MetricsServer | None) -> None:
        self.server = server

    def before_start(self) -> None:
        """Start to answer."""
        if self.server is not None:
            self.server.start()

    def close(self) -> None:
        """Stop to answer."""
        if self.server is not None:
            self.server.stop()


class _Memory:
    """A connection for http.server whose request has been read and whose answer is kept in memory."""

    def __init__(self, request: bytes) -> None:
        self._request = request
        self.answer = b""

    def makefile(self, *_: Any) -> io.BytesIO:
        """Return the request as a file."""
        return io.BytesIO(self._request)

    def sendall(self, data: bytes) -> None:
        """Collect the answer."""
        self.answer += data


def _answerer(registry: CollectorRegistry, token: bytes, answers: Answers) -> Callable[[Request], bytes]:
    """Return a function that answers a request; the standard library's handler reads and writes HTTP."""

    class Handler(BaseHTTPRequestHandler):
        server_version = "gpuwaste"
        sys_version = ""

        def do_GET(self) -> None:
            """Answer /metrics, or one of the separate paths."""
            path, authorization = self.path.partition("?")[0], self.headers.get("Authorization", "")
            if path in answers:
                reply = answers[path](self.path, authorization)
                self._answer(reply.status, reply.body, *reply.headers)
                return
            if path != "/metrics":
                self._answer(HTTPStatus.NOT_FOUND, b"see /metrics\n")
                return
            shown = authorization.encode("latin-1", "replace")
            if token and not hmac.compare_digest(shown, b"Bearer " + token):
                self._answer(HTTPStatus.UNAUTHORIZED, b"a bearer token is needed\n", ("WWW-Authenticate", "Bearer"))
                return
            encode, content_type = choose_encoder(self.headers.get("Accept", ""))
            self._answer(HTTPStatus.OK, encode(registry), ("Content-Type", content_type))

        def _answer(self, status: HTTPStatus, body: bytes, *headers: tuple[str, str]) -> None:
            self.send_response(status)
            for name, value in headers or [("Content-Type", "text/plain; charset=utf-8")]:
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 the base class names it so
            """Log no scrapes."""

    def answer(request: Request) -> bytes:
        if len(request.data) > _LIMITS.most:
            return _TOO_LARGE
        memory: Any = _Memory(request.data)
        server: Any = None  # which it asks for nothing
        Handler(memory, ("", 0), server)
        return bytes(memory.answer)

    return answer


def server_tls(cert: str, key: str, section: str) -> ssl.SSLContext:
    """Return the TLS context with the certificate for scrapers. Raises ConfigError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(cert, key or None)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"[{section}] tls_cert, tls_key: {cert}: {error}") from error
    return context


def server_token(path: str, section: str) -> bytes:
    """Return the token that a scrape must show. Raises ConfigError."""
    try:
        token = read_closed(Path(path), _MAX_TOKEN, "the token").strip()
    except ConfigError as error:
        raise ConfigError(f"[{section}] metrics_token_file: {error}") from error
    if not token:
        raise ConfigError(f"[{section}] metrics_token_file: {path}: is empty")
    return token.encode("ascii")


class ProgramCollector(Collector):
    """Yields these metrics; the space is absent where there is no state_dir or it cannot be read."""

    def __init__(self, version: str, now_us: Callable[[], int], state_dir: Path | None) -> None:
        self._version = version
        self._now_us = now_us
        self._state_dir = state_dir
        self._began_us = now_us()

    def collect(self) -> Iterator[Metric]:
        """Yield the current metrics."""
        build = GaugeMetricFamily(*_BUILD, labels=["version"])
        build.add_metric([self._version], 1)
        yield build
        yield GaugeMetricFamily(*_START, self._began_us / 1e6)
        yield GaugeMetricFamily(*_CLOCK, self._now_us() / 1e6)
        if self._state_dir is None:
            return
        try:
            room = shutil.disk_usage(self._state_dir)
        except OSError:
            return
        yield GaugeMetricFamily(*_FREE, room.free)
        yield GaugeMetricFamily(*_SIZE, room.total)

    def describe(self) -> Iterator[Metric]:
        """Yield nothing: registering must not read."""
        yield from ()
