"""A receiver of webhooks on loopback: checks the signature as Standard Webhooks' own library does, keeps the events."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from standardwebhooks import Webhook


@dataclass
class WebhookReceiver:
    """What it has, and how it answers: `status` gets the events of a request and returns the status."""

    secret: str = ""
    status: Callable[[list[dict[str, Any]]], int] = lambda _: 204
    requests: list[dict[str, Any]] = field(default_factory=list)  # headers by their small names
    events: list[dict[str, Any]] = field(default_factory=list)  # of requests that were answered well
    port: int = 0
    location: str = ""  # of redirects
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}/hooks/gpu?site=a"

    def take(self, path: str, headers: dict[str, str], body: bytes) -> int:
        """Return the status of a request. Raises WebhookVerificationError for a wrong signature."""
        if self.secret:
            Webhook(self.secret).verify(body, headers)
        found = json.loads(body)
        events = found if isinstance(found, list) else [found]
        status = self.status(events)
        with self.lock:
            self.requests.append({**headers, "path": path, "events": len(events), "bytes": len(body)})
            if status < 300:  # noqa: PLR2004 taken
                self.events += events
        return status


@contextmanager
def webhook_receiver(**options: Any) -> Iterator[WebhookReceiver]:
    """Lend a receiver."""
    receiver = WebhookReceiver(**options)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status = receiver.take(self.path, {k.lower(): v for k, v in self.headers.items()}, body)
            self.send_response(status)
            if receiver.location:
                self.send_header("Location", receiver.location)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 http.server's name
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        receiver.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield receiver
        finally:
            server.shutdown()
            thread.join()
