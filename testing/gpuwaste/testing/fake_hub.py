"""A hub played by the standard library's HTTP server, in memory: real requests, real signatures, faults on demand."""

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, Self

from gpuwaste.core.errors import AuthError, ParseError, RetryableWireError
from gpuwaste.ledger.hour import AllocationHour, RowKey, parse_hours
from gpuwaste.net.batch import PROTOCOL_MAX, PROTOCOL_MIN, Ack, Envelope, json_line, parse_envelope
from gpuwaste.net.request_signing import Caller, CredentialChecker, Via, sign_ack, verify_request

MAX_BODY_BYTES: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer of the hub's."""

    status: int
    body: bytes
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Received:
    """A batch that came in with a good credential."""

    envelope: Envelope
    batch_id: str
    caller: Caller
    rows: tuple[AllocationHour, ...]


class FakeHub:
    """Takes hours and serves `documents` (JSON objects by path without query) on a free port of loopback.

    `refuse` may answer a batch with a status other than 200; `reject` may refuse one row with a reason; `change` may
    alter the reply before it is sent (after the signature, so that it can forge one). `max_body_bytes` is obeyed.
    """

    def __init__(self, checkers: Mapping[Via, CredentialChecker]) -> None:
        self.checkers = checkers
        self.documents: dict[str, dict[str, Any]] = {}
        self.rows: dict[RowKey, AllocationHour] = {}
        self.received: list[Received] = []
        self.callers: list[Caller] = []
        self.max_body_bytes = MAX_BODY_BYTES
        self.refuse: Callable[[Received], tuple[int, str] | None] = lambda _: None
        self.reject: Callable[[AllocationHour], str | None] = lambda _: None
        self.change: Callable[[Reply], Reply] = lambda reply: reply
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        """Listen."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)

    def reply(self, method: str, target: str, body: bytes, authorization: str) -> Reply:
        """Return the answer to one request."""
        try:
            caller = verify_request(self.checkers, authorization, method, target, body)
        except AuthError as error:
            return _error(401, str(error), retry=isinstance(error, RetryableWireError))
        with self._lock:
            self.callers.append(caller)
            if method == "POST":
                return self.change(self._ingest(body, caller))
            document = self.documents.get(target.partition("?")[0])
            found = _error(404, "not found") if document is None else Reply(200, json_line(document), {})
            return self.change(found)

    def _ingest(self, body: bytes, caller: Caller) -> Reply:
        if len(body) > self.max_body_bytes:
            return _error(413, f"more than {self.max_body_bytes} bytes")
        try:
            envelope, batch_id = parse_envelope(body)
        except ParseError as error:
            return _error(400, str(error))
        if not PROTOCOL_MIN <= envelope.protocol <= PROTOCOL_MAX:
            return _error(426, "protocol out of range", protocol=[PROTOCOL_MIN, PROTOCOL_MAX])
        parsed = list(parse_hours(body))
        rejected = {line: str(row) for line, row in parsed if isinstance(row, ParseError)}
        good = {line: row for line, row in parsed if isinstance(row, AllocationHour)}
        received = Received(envelope, batch_id, caller, tuple(good.values()))
        self.received.append(received)
        refusal = self.refuse(received)
        if refusal is not None:
            return _error(*refusal)
        for line, row in good.items():
            reason = self.reject(row)
            if reason is None:
                self._keep(row)
            else:
                rejected[line] = reason
        answer = Ack(batch_id, len(parsed) - len(rejected), rejected).to_bytes()
        return Reply(200, answer, sign_ack(self.checkers, caller, answer))

    def _keep(self, row: AllocationHour) -> None:
        kept = self.rows.get(row.key)
        if kept is None or row.seq > kept.seq:
            self.rows[row.key] = row


def _error(status: int, words: str, **more: object) -> Reply:
    return Reply(status, json.dumps({"error": words, **more}).encode(), {})


def _handler(hub: FakeHub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        """Hands each request to the hub."""

        def do_GET(self) -> None:
            """Serve a document."""
            self._answer(b"")

        def do_POST(self) -> None:
            """Take a batch."""
            self._answer(self.rfile.read(int(self.headers.get("Content-Length", "0"))))

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 the base class names it
            """Say nothing."""

        def _answer(self, body: bytes) -> None:
            reply = hub.reply(self.command, self.path, body, self.headers.get("Authorization", ""))
            self.send_response(reply.status)
            headers = {"Content-Length": str(len(reply.body)), "Content-Type": "application/json", **reply.headers}
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(reply.body)

    return Handler
