"""The HTTP client: one exchange, bounded in time and size, over TCP, TLS or a Unix socket; redirects are not followed.

Each exchange has its own connection. http.client sends the target unchanged, and the credential is bound to it;
libraries with pools rewrite it, their timeouts limit each read and not the exchange, and a command would wait for
their import (docs/decisions/0001-dependencies.md). Every error is a WireError, which names the URL in one line.
"""

import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPMessage, HTTPResponse, HTTPSConnection, IncompleteRead
from typing import BinaryIO, Final, Self

from gpuwaste.core.errors import AuthError, ConfigError, RetryableWireError, StoreError, WireError
from gpuwaste.core.unix_socket import connect_unix
from gpuwaste.net.addresses import Endpoint

CONNECT_S: Final = 10.0
_CHUNK: Final = 64 * 1024
_OK: Final = 200


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One request; the target is the path with its query, percent-encoded."""

    method: str
    target: str
    body: bytes
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """A complete answer."""

    status: int
    headers: HTTPMessage
    body: bytes
    url: str  # of the server that answered


def tls_context(ca: str) -> ssl.SSLContext:
    """Return a client's TLS context that trusts `ca`, or the system's authorities. Raises ConfigError."""
    try:
        return ssl.create_default_context(cafile=ca or None)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"hub_ca {ca}: not a PEM file of certificates: {error}") from error


class UnreachedError(RetryableWireError):
    """No connection was made: nothing of the request was sent."""


class DeadlineError(RetryableWireError):
    """The exchange was not complete in time: the server may still be processing the request."""


class AnswerSizeError(WireError):
    """The answer is larger than allowed."""


def cause_of(error: WireError) -> str:
    """Return the cause of a failed exchange in a few words, without the URL and the advice."""
    return _words(error.__cause__) if isinstance(error.__cause__, Exception) else str(error)


class UnixConnection(HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path
        self._timeout_s = timeout

    def connect(self) -> None:
        """Connect to the socket's path."""
        self.sock = connect_unix(self._path, self._timeout_s)


class _Watchdog:
    """Aborts a connection when the entire exchange takes longer: slow single bytes renew each read's timeout."""

    def __init__(self, connection: HTTPConnection, seconds: float) -> None:
        self._connection = connection
        self._timer = threading.Timer(seconds, self._break_off)
        self._timer.daemon = True
        self.late = False
        self.sock: socket.socket | None = (
            None  # once connected: http.client drops it where the answer ends with a close
        )

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()

    def _break_off(self) -> None:
        self.late = True
        sock = self.sock or self._connection.sock
        if sock is not None:
            with suppress(OSError):
                socket.socket.shutdown(sock, socket.SHUT_RDWR)  # not SSLSocket's, which would drop its TLS state


class HttpExchange:
    """Sends one request to an endpoint and reads its complete answer."""

    def __init__(
        self,
        endpoint: Endpoint,
        tls: ssl.SSLContext | None,
        timeout_s: float,
        max_bytes: int,
        connect_s: float = CONNECT_S,
        *,
        check_peer: Callable[[str], None] | None = None,
    ) -> None:
        """`check_peer` gets the address of the connected peer, and may raise before anything of the request is sent."""
        self._endpoint = endpoint
        self._check_peer = check_peer
        self._tls = tls
        self._connect_s = connect_s
        self._timeout_s = timeout_s
        self._max_bytes = max_bytes

    def send(self, request: HttpRequest, sink: BinaryIO | None = None) -> HttpAnswer:
        """Return the answer, whatever its status; the body of a successful one is written to `sink` where there is one.

        Raises UnreachedError where the server is not reached, DeadlineError where it is not done in time,
        RetryableWireError where the connection breaks; AuthError where its certificate is not trusted;
        AnswerSizeError where the answer is too large; WireError where it is not HTTP.
        """
        connection = self._connection()
        watchdog = _Watchdog(connection, self._timeout_s)
        try:
            with watchdog, self._translated():
                answer = self._exchange(connection, watchdog, request, sink)
        except WireError:
            if watchdog.late:
                raise self._too_late() from None
            raise
        finally:
            connection.close()
        if watchdog.late:
            raise self._too_late()
        return answer

    def _exchange(
        self, connection: HTTPConnection, watchdog: _Watchdog, request: HttpRequest, sink: BinaryIO | None
    ) -> HttpAnswer:
        # A server that rejects early closes its reading side; its answer may have arrived all the same.
        self._connect(connection)
        if self._check_peer is not None:
            self._check_peer(str(connection.sock.getpeername()[0]))
        connection.sock.settimeout(self._timeout_s)  # an answer may take longer than connecting
        with suppress(BrokenPipeError):
            connection.request(request.method, request.target, request.body or None, request.headers)
        watchdog.sock = connection.sock
        response = connection.getresponse()
        try:
            if sink is not None and response.status == _OK:
                self._pour(response, sink)
                return HttpAnswer(response.status, response.headers, b"", self._endpoint.url)
            body = b"".join(self._parts(response))
            return HttpAnswer(response.status, response.headers, body, self._endpoint.url)
        finally:
            response.close()

    def _connect(self, connection: HTTPConnection) -> None:
        try:
            connection.connect()
        except ssl.SSLCertVerificationError:
            raise
        except OSError as error:
            raise UnreachedError(f"{self._endpoint.url}: {_words(error)}: {self._endpoint.hint}") from error

    def _pour(self, response: HTTPResponse, sink: BinaryIO) -> None:
        for part in self._parts(response):
            try:
                sink.write(part)
            except OSError as error:
                raise StoreError(f"the answer of {self._endpoint.url} cannot be written: {error.strerror}") from error

    def _parts(self, response: HTTPResponse) -> Iterator[bytes]:
        size = 0
        while part := response.read(_CHUNK):
            size += len(part)
            if size > self._max_bytes:
                raise AnswerSizeError(f"{self._endpoint.url}: the answer is larger than {self._max_bytes} bytes")
            yield part
        if response.length:  # http.client treats an answer that ends early as complete
            raise IncompleteRead(b"", response.length)

    def _connection(self) -> HTTPConnection:
        endpoint, timeout = self._endpoint, min(self._connect_s, self._timeout_s)
        if endpoint.scheme == "unix":
            return UnixConnection(endpoint.host, self._timeout_s)
        if endpoint.scheme == "https":
            return HTTPSConnection(endpoint.host, endpoint.port, timeout=timeout, context=self._tls)
        return HTTPConnection(endpoint.host, endpoint.port, timeout=timeout)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Turn the errors of sockets, TLS and HTTP into WireError and its subclasses."""
        url = self._endpoint.url
        try:
            yield
        except ssl.SSLCertVerificationError as error:
            raise AuthError(f"{url}: its certificate is not trusted ({error.verify_message}): see hub_ca") from error
        except TimeoutError as error:  # of a socket whose timeout is that of the entire exchange
            raise self._too_late() from error
        except (OSError, IncompleteRead) as error:
            raise RetryableWireError(f"{url}: {_words(error)}: {self._endpoint.hint}") from error
        except (HTTPException, ValueError) as error:
            raise WireError(
                f"{url}: does not answer as an HTTP server ({_words(error)}): see {self._endpoint.key}"
            ) from error

    def _too_late(self) -> DeadlineError:
        return DeadlineError(f"{self._endpoint.url}: no complete answer within {self._timeout_s:g} s")


def _words(error: Exception) -> str:
    """Return the cause in a few words."""
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return (" ".join(text.split()) or type(error).__name__)[:200]
