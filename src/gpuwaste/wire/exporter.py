"""/metrics over HTTP or HTTPS, in threads of its own, with an optional bearer token."""

import contextlib
import hmac
import socket
import ssl
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import CollectorRegistry

from gpuwaste.core.errors import ConfigError
from gpuwaste.core.files import read_closed

_TIMEOUT_S: Final = 5.0  # for one read or write
_DEADLINE_S: Final = 10.0  # for a whole request, however it trickles in
_MAX_OPEN: Final = 64  # connections; one more costs the oldest its own, so that silent ones keep nobody out
_MAX_TOKEN: Final = 4096  # bytes of the token's file
_AT_WORK: Final = 4  # pages made at a time


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
    ) -> None:
        token = server_token(token_file, section) if token_file else b""
        context = server_tls(tls_cert, tls_key, section) if tls_cert else None
        host, port = _address(listen, section)
        try:
            self._server = _Server(host, port, _handler(registry, token), context)
        except (OSError, OverflowError) as error:
            raise ConfigError(f"[{section}] listen: {listen}: {error}") from error
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), name="exporter", daemon=True)

    @property
    def port(self) -> int:
        """The port that is listened on."""
        return int(self._server.server_address[1])

    def start(self) -> None:
        """Start to answer."""
        self._thread.start()

    def stop(self) -> None:
        """Stop to answer."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(
        self, host: str, port: int, handler: type[BaseHTTPRequestHandler], context: ssl.SSLContext | None
    ) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._context = context
        self._lock = threading.Lock()
        self._open: dict[Any, None] = {}  # the oldest first
        super().__init__((host, port), handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Take a connection in; where there are too many the oldest, which said the least for its time, has to go."""
        with self._lock:
            self._open[request] = None
            while len(self._open) > _MAX_OPEN:
                oldest = next(iter(self._open))
                del self._open[oldest]
                _hang_up(oldest)
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve one connection; the TLS handshake is made here, not in the accepting thread."""
        taken = request
        deadline = threading.Timer(_DEADLINE_S, _hang_up, [request])
        deadline.daemon = True
        deadline.start()
        try:
            request.settimeout(_TIMEOUT_S)
            if self._context is not None:
                request = self._context.wrap_socket(request, server_side=True)
            super().process_request_thread(request, client_address)
        except OSError:  # a client that is no TLS client, or gone
            self.shutdown_request(request)
        finally:
            deadline.cancel()
            with self._lock:
                self._open.pop(taken, None)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: a client that hangs up is no event of ours."""


def _handler(registry: CollectorRegistry, token: bytes) -> type[BaseHTTPRequestHandler]:
    at_work = threading.BoundedSemaphore(_AT_WORK)

    class Handler(BaseHTTPRequestHandler):
        server_version = "gpuwaste"
        sys_version = ""
        timeout = _TIMEOUT_S

        def do_GET(self) -> None:
            """Answer /metrics."""
            if self.path.partition("?")[0] != "/metrics":
                self._answer(HTTPStatus.NOT_FOUND, b"see /metrics\n")
                return
            shown = self.headers.get("Authorization", "").encode("latin-1", "replace")
            if token and not hmac.compare_digest(shown, b"Bearer " + token):
                self._answer(HTTPStatus.UNAUTHORIZED, b"a bearer token is needed\n", ("WWW-Authenticate", "Bearer"))
                return
            encode, content_type = choose_encoder(self.headers.get("Accept", ""))
            with at_work:
                page = encode(registry)
            self._answer(HTTPStatus.OK, page, ("Content-Type", content_type))

        def _answer(self, status: HTTPStatus, body: bytes, *headers: tuple[str, str]) -> None:
            self.send_response(status)
            for name, value in headers or [("Content-Type", "text/plain; charset=utf-8")]:
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 the base class names it so
            """Log no scrapes."""

    return Handler


def _hang_up(request: socket.socket) -> None:
    with contextlib.suppress(OSError):
        request.shutdown(socket.SHUT_RDWR)


def _address(listen: str, section: str) -> tuple[str, int]:
    host, _, port = listen.rpartition(":")
    if not port.isdigit():
        raise ConfigError(f"[{section}] listen: {listen!r}: expected ADDRESS:PORT")
    return host.strip("[]"), int(port)


def server_tls(cert: str, key: str, section: str) -> ssl.SSLContext:
    """Return what shows a certificate to scrapers. Raises ConfigError."""
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
