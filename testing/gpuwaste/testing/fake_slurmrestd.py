"""FakeSlurmrestd: a slurmrestd on loopback or at a Unix socket that answers what a test tells it to."""

import socketserver
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self
from urllib.parse import parse_qsl, urlsplit


@dataclass(frozen=True, slots=True)
class FakeRequest:
    """One request as it came in."""

    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class FakeAnswer:
    """One answer; a `length` other than the body's says more or less than comes."""

    status: int = 200
    body: bytes = b'{"jobs": []}'
    length: int | None = None


UNKNOWN_URL = FakeAnswer(404, b"Unable find requested URL. Please view /openapi/v3 for API reference.")


class _UnixServer(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True


@dataclass
class FakeSlurmrestd:
    """Serves `answer` while entered; `asked` holds what came. `path` serves a Unix socket instead of a TCP port."""

    answer: Callable[[FakeRequest], FakeAnswer]
    path: str = ""
    asked: list[FakeRequest] = field(default_factory=list)

    def __enter__(self) -> Self:
        handler = self._handler()
        if self.path:
            self._server: socketserver.BaseServer = _UnixServer(self.path, handler)
        else:
            self._server = server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
            self._port = server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        """Where it listens, as slurmrestd_url takes it."""
        return f"unix:{self.path}" if self.path else f"http://127.0.0.1:{self._port}"

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                parts = urlsplit(self.path)
                asked = FakeRequest(parts.path, dict(parse_qsl(parts.query)), dict(self.headers))
                fake.asked.append(asked)
                told = fake.answer(asked)
                self.send_response(told.status)
                self.send_header("Content-Length", str(len(told.body) if told.length is None else told.length))
                self.end_headers()
                self.wfile.write(told.body)
                self.close_connection = self.close_connection or told.length is not None

            def address_string(self) -> str:
                return "test"

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 the base class names it so
                pass

        return Handler
