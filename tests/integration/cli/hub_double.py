"""A hub on a Unix socket that answers GETs and POSTs from a table and keeps what was asked."""

import json
import socketserver
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit


class HubDouble(socketserver.ThreadingUnixStreamServer):
    """Answers by path; `asked` holds path and parameters of each request."""

    daemon_threads = True

    def __init__(self, socket: Path) -> None:
        super().__init__(str(socket), _Handler)
        self.answers: dict[str, dict[str, Any]] = {}
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.sent: list[dict[str, Any]] = []  # the bodies of POSTs
        self.go_on = threading.Event()  # cleared: answers wait
        self.go_on.set()

    def handle_error(self, request: object, client_address: object) -> None:
        """Keep quiet: a command that was interrupted has hung up."""


class _Handler(BaseHTTPRequestHandler):
    server: HubDouble
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Keep the body and answer as a GET."""
        self.server.sent.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.do_GET()

    def do_GET(self) -> None:
        """Answer one GET."""
        parts = urlsplit(self.path)
        self.server.asked.append((parts.path, dict(parse_qsl(parts.query))))
        self.server.go_on.wait(60)
        answer = self.server.answers.get(parts.path)
        body = json.dumps(answer if answer is not None else {"error": "not found"}).encode()
        self.send_response(200 if answer is not None else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Keep quiet."""

    def address_string(self) -> str:
        """Return a name: a Unix peer has no address."""
        return "local"


@contextmanager
def running_hub(folder: Path) -> Iterator[HubDouble]:
    """Serve until the block ends; `folder`/gpuwaste.toml names the socket, whose path is short wherever that lies."""
    with tempfile.TemporaryDirectory(prefix="gwhub", dir="/tmp") as short:
        socket = Path(short) / "hub.sock"
        (folder / "gpuwaste.toml").write_text(f'[common]\nhub_url = "unix:{socket}"\n')
        with _serving(socket) as hub:
            yield hub


@contextmanager
def _serving(socket: Path) -> Iterator[HubDouble]:
    with HubDouble(socket) as hub:
        thread = threading.Thread(target=hub.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield hub
        finally:
            hub.shutdown()
            thread.join()
